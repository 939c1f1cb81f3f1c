"""Costs in dollars: dated prices, billing, and the comparison of one job on several instances."""
