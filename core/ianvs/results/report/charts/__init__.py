"""Charts as SVG: what a page shows, and what is saved as the images of a report."""
