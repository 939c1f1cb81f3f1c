"""Charts as SVG. They name classes only; the stylesheet sets all colours and lines."""
