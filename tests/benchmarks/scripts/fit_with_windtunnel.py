"""Windtunnel's SDK: prints the job's name; with a number of seconds, waits for it and prints how long fit() took."""

import sys
import time

from windtunnel import PyTorch

estimator = PyTorch(
    "eight_seconds.py",
    source_dir=sys.argv[1],
    framework_version="2.9",
    instance_type="ml.trn1.2xlarge",
    instance_count=1,
    hyperparameters={"seconds": sys.argv[2]},
)
began = time.perf_counter()
job = estimator.fit(wait=sys.argv[3] == "wait")
print("RESULT", job.name, time.perf_counter() - began)
