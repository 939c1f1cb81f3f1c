"""What the page of one training job shows: its log, metrics, phases, files and request."""
