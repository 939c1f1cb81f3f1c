"""Ends, or does not, as --how says."""

import argparse
import os
import signal
import time

parser = argparse.ArgumentParser()
parser.add_argument("--how", required=True)
how = parser.parse_known_args()[0].how
if how == "raise":
    raise ValueError("the learning rate is a banana")
if how == "memory":
    hoard = []
    while True:
        hoard.append(b"x" * 2**26)
if how == "killed":
    os.kill(os.getppid(), signal.SIGKILL)
if how == "forever":
    print("running", flush=True)
    time.sleep(3600)
if how == "save-and-wait":
    with open(os.path.join(os.environ["SM_MODEL_DIR"], "saved"), "w") as file:
        file.write("state")
    print("running", flush=True)
    time.sleep(3600)
if how == "lines":
    for number in range(200):
        print(f"line {number:03d}", flush=True)
        time.sleep(0.04)
if how == "leave-files":
    for variable in ("SM_MODEL_DIR", "SM_OUTPUT_DATA_DIR"):
        os.makedirs(os.path.join(os.environ[variable], "deep", "er"))
        open(os.path.join(os.environ[variable], "deep", "er", "file"), "w").close()
    print(f"left by {os.getuid()}", flush=True)
