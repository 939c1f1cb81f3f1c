"""The price list."""
