"""Methods for numbers to be estimated."""
