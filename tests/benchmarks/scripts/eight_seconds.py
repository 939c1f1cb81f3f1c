"""Says that it runs, and takes the time that it is told to."""

import argparse
import time

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=5)
print("FIRST", flush=True)
time.sleep(parser.parse_known_args()[0].seconds)
