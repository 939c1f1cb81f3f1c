"""The `windtunnel` command. Each module registers its commands; `main` runs the one asked for."""
