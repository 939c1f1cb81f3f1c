"""Small real classes behind our own ports, for tests."""
