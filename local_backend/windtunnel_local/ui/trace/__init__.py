"""A job's steps over time: what is known of each, and the file that other viewers read."""
