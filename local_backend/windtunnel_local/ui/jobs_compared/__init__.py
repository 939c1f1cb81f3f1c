"""What the comparison of several jobs consists of."""
