"""The data of the page that compares several jobs."""
