"""Prints the time of its first line; with --hold 1 it stays until it is stopped."""

import time

print(f"FIRST {time.time():.6f}", flush=True)

import sys

if "--hold" in sys.argv:
    time.sleep(600)
