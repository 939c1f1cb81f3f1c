"""The `windtunnel` command: a file for each command, with an entry in `main.COMMANDS`."""
