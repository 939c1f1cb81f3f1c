"""The dated price list: built-in, what was fetched from AWS, and who asks AWS for it."""
