"""Tables, figures and pages. Numbers are computed elsewhere."""
