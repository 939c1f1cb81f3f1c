"""One job on several instances."""
