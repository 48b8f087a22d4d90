"""Each method beside an independent, naive statement of it: what it does over steps, epochs and rounds."""
