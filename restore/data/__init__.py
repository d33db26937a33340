"""Training data: degradations, sampling, data sets."""
