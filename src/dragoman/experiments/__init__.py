"""The ladder: every kind of model on one text, made, measured and told of."""
