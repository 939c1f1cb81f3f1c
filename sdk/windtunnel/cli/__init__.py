"""The `windtunnel` command: one command a file, each with an entry in `main.COMMANDS`."""
