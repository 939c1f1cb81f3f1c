"""The parts of the page that shows a job's time and cost on AWS: the reader's choices, and the figures."""
