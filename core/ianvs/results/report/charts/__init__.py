"""Charts as SVG, for the page and for image files."""
