"""The report of one job: what was measured, and what is modelled from it."""
