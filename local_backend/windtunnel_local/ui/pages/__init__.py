"""One file a page: `routes` makes what `windtunnel_local.ui.app` has in its table."""
