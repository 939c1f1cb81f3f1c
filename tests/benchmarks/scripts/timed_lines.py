"""Prints 200 lines with the time of each."""

import time

for number in range(200):
    print(f"LINE {time.time():.6f}", flush=True)
    time.sleep(0.04)
