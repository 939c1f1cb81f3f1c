"""What Trainium would tell too late about a script."""
