"""What the page of the answer is made of: what was chosen, and the figures that follow."""
