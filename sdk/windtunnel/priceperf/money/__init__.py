"""Dollars: prices and their dates, billing, and one job compared on several instances."""
