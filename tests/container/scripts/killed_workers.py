"""Workers under torch's agent that only exchange data; one of them is killed at a random moment. Many rounds."""

import os
import random
import signal
import socket
import sys
import threading
import time

from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from neuron_sim import settings
from neuron_sim.interconnect import region
from neuron_sim.interconnect.communicator import Communicator
from neuron_sim.launcher import postmortem

WORKERS, ROUNDS = int(sys.argv[1]), int(sys.argv[2])
chance = random.Random(int(os.environ["SEED"]))


def work():
    import torch

    torch.set_num_threads(1)
    communicator = Communicator(settings.identity(), 2**22, 60)
    communicator.join()
    group = list(range(WORKERS))
    order = random.Random(0)
    while True:
        size = order.choice([1, 1000, 300_000])
        communicator.announce(group, f"all_reduce of {size} at killed_workers.py:35")
        communicator.all_reduce_(torch.ones(size), "sum", group)
        time.sleep(order.choice([0, 0, 0.003]))


def kill(victim, delay):
    seats = region.prepared(0, 0, WORKERS)
    while not seats.pids.all():
        time.sleep(0.01)
    time.sleep(delay)
    pid = int(seats.pids[victim])
    print("KILLED", victim, pid, time.monotonic(), flush=True)
    os.kill(pid, signal.SIGKILL)


for _ in range(ROUNDS):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = LaunchConfig(
        min_nodes=1, max_nodes=1, nproc_per_node=WORKERS, run_id="killed", rdzv_backend="static",
        rdzv_endpoint=f"127.0.0.1:{port}", rdzv_configs={"rank": 0}, max_restarts=0, start_method="fork",
    )  # fmt: skip
    try:
        with postmortem.watching(WORKERS, 0, 2**22):
            killer = threading.Thread(target=kill, args=(chance.randrange(WORKERS), chance.uniform(0, 0.3)))
            killer.start()
            elastic_launch(config, work)()
    except ChildFailedError:
        print("OVER", time.monotonic(), flush=True)
    killer.join()
