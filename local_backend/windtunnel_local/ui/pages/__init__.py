"""One file for each page. Its `routes`, listed in `windtunnel_local.ui.app`, returns the page's routes."""
