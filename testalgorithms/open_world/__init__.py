"""What methods share that know what they do not know."""
