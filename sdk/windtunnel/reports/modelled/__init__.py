"""What is modelled, as sections, data and charts: shared by the reports that show it."""
