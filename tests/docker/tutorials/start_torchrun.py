"""An entry point that starts torchrun itself, with the hyperparameters that it has got."""

import json
import os
import subprocess
import sys

hosts = json.loads(os.environ["SM_HOSTS"])
command = [
    "torchrun",
    f"--nnodes={len(hosts)}",
    f"--node_rank={hosts.index(os.environ['SM_CURRENT_HOST'])}",
    f"--nproc_per_node={os.environ['SM_NUM_NEURONS']}",
    f"--master_addr={hosts[0]}",
    "--master_port=41000",
    "mlp_torchrun.py",
    *sys.argv[1:],
]
print("starting", " ".join(command), flush=True)
subprocess.check_call(command, env={**os.environ, "XLA_DOWNCAST_BF16": "0", "MALLOC_ARENA_MAX": "64"})
