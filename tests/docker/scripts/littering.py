"""Says what it finds that is not its own, then leaves as much behind as it can."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import torch_xla.core.xla_model as xm

LITTER = "windtunnel-litter"
PLACES = [
    Path(place)
    for place in ("/tmp", "/var/tmp", "/dev/shm", os.environ["HOME"], "/opt/ml/output/data", "/home/job")
]

if xm.is_master_ordinal():
    files = [str(place) for place in PLACES if (place / LITTER).exists()]
    processes = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended just now
            processes.append(path.read_text().replace("\0", " ").strip())
    found = {
        "files": files,
        "processes": [process for process in processes if "sleep" in process],
        "code": sorted(path.name for path in Path("/opt/ml/code").iterdir()),
        "secret": os.environ.get("SECRET"),
        "folder": str(Path.cwd()),
        "cache": sorted(
            path.name for path in Path(os.environ["SAGEMAKER_MANAGED_WARMPOOL_CACHE_DIRECTORY"]).iterdir()
        ),
        "train": [path.read_text() for path in sorted(Path("/opt/ml/input/data/train").iterdir())],
        "arguments": sys.argv[1:],
    }
    print("FOUND " + json.dumps(found), flush=True)
    for place in PLACES:
        (place / LITTER).mkdir()
        (place / LITTER / "file").write_text("x")
    Path("/opt/ml/code/litter.py").write_text("x")
    Path(os.environ["SAGEMAKER_MANAGED_WARMPOOL_CACHE_DIRECTORY"], "wheel").write_text("x")
    nothing = subprocess.DEVNULL
    subprocess.Popen(["sleep", "1000"], stdout=nothing, stderr=nothing, start_new_session=True)
    # It also claims to have ended, and that all is clean, so that it may live on beside the next job.
    orders = Path("/opt/windtunnel/keeper")
    order = json.loads(json.loads((orders / "order.json").read_text())["record"])["id"]
    for name in ("ended.json", "cleaned.json"):
        said = {"id": order, "exit_code": 0, "problems": []}
        (orders / name).write_text(json.dumps({**said, "record": json.dumps(said), "seal": order}))
    time.sleep(1)
    Path("/opt/ml/model/name").write_text(os.environ["TRAINING_JOB_NAME"])
    sys.stdout.write("no end of line")
    sys.stdout.flush()
