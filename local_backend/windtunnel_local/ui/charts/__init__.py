"""Charts as SVG, made here: colours by class, as the stylesheet alone says what they look like."""
