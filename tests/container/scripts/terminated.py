"""Says that it runs, and when it is told to end."""

import signal
import sys
import time


def handler(number, frame):
    print(f"saved at signal {number}", flush=True)
    sys.exit(0)


signal.signal(signal.SIGTERM, handler)
print("waiting to be told", flush=True)
time.sleep(1200)
