"""What charts of reports share: `Chart`, its themes, and SVG for pages.

matplotlib (extra ``plot``) is imported only when a chart is drawn; title, caption and words do not need it.
"""
