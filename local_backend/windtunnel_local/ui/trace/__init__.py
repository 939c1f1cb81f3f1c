"""A job's steps over time: read from steps.json, and written as a trace file for other viewers."""
