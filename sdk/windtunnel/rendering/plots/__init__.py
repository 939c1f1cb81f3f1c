"""Charts of a report with matplotlib (extra ``plot``), which is imported only when one is drawn.

Each module says what one chart shows, as a `Chart`: title, caption and words need no matplotlib.
"""
