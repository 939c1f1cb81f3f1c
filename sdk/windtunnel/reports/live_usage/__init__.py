"""What the cores of a running job do now: `windtunnel top`."""
