"""The doctor: looks a text over before a model is trained on it."""
