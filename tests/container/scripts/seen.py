"""Says what a worker finds around it: flags of XLA, and processors."""

import os
from pathlib import Path

from saying import say

status = Path("/proc/self/status").read_text().splitlines()
allowed = next(line.split()[1] for line in status if line.startswith("Cpus_allowed_list:"))
say(
    xla_flags=os.environ["XLA_FLAGS"],
    place=[int(number) for number in allowed.split(",") if number.isdigit()],
    processors=sorted(os.sched_getaffinity(0)),
)
