"""The common parts of methods that detect samples of unknown classes."""
