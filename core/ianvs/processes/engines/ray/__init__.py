"""The engine of a cluster."""
