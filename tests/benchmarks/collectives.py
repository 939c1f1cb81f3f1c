"""all_reduce between simulated cores: the shared memory against torch.distributed's gloo.

    python tests/benchmarks/collectives.py [--ranks 2 8 32] [--image NAME]

Runs in the training image and prints one JSON object. The same processes do both,
in turn, on the same host tensors, in place: 100 MB of fp32 (`speedup`: gloo's median
over ours, from the first rank's start to the last one's end) and 1 KiB
(`latency_ratio`: ours over gloo's, a loop of operations). Every result is checked,
and ours includes the comparison of what the ranks call.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
INSIDE = "/benchmarks"
LARGE, SMALL = 25_000_000, 256
SHARED_MEMORY_BYTES = 64 * 2**20
REPEATS, LOOPS, LOOP = 5, 5, 100

Spans = dict[str, list[tuple[float, float]]]


def main() -> None:
    """Start the container; or, inside it, measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 8, 32])
    parser.add_argument("--image", default=os.environ.get("WINDTUNNEL_IMAGE", "windtunnel-training:0.1.0"))
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    ranks = [str(count) for count in arguments.ranks]
    if arguments.inside:
        results = {count: measure(int(count)) for count in ranks}
        shared = max(result.pop("shared_memory_mib") for result in results.values())
        print(json.dumps({"ranks": results, "shared_memory_mib": shared, **about()}, indent=2))
        return
    command = [
        "docker", "run", "--rm", "--network", "none", "--shm-size", "512m", "--entrypoint", "python",
        "--env", "OMP_NUM_THREADS=1", "--volume", f"{HERE}:{INSIDE}:ro",
        arguments.image, f"{INSIDE}/collectives.py", "--inside", "--ranks", *ranks,
    ]  # fmt: skip
    sys.exit(subprocess.run(command, check=False).returncode)


def about() -> dict[str, object]:
    """What was measured, and where."""
    return {
        "processors": len(os.sched_getaffinity(0)),
        "large_bytes": LARGE * 4,
        "small_bytes": SMALL * 4,
        "repeats": REPEATS,
        "small_operations": LOOPS * LOOP,
    }


def measure(world: int) -> dict[str, Any]:
    """Both with so many ranks; medians."""
    context = multiprocessing.get_context("fork")
    os.environ["NEURON_SIM_LAUNCH"] = f"benchmark-{os.getpid()}-{world}"
    with tempfile.TemporaryDirectory() as folder:
        pipes, processes = [], []
        for rank in range(world):
            mine, theirs = context.Pipe(duplex=False)
            process = context.Process(target=work, args=(rank, world, f"{folder}/store", theirs))
            process.start()
            pipes.append(mine)
            processes.append(process)
        said = [pipe.recv() for pipe in pipes]
        for process in processes:
            process.join()
    ours, gloo = (median(said, f"{name} large") for name in ("shared memory", "gloo"))
    small, gloo_small = (median(said, f"{name} small") / LOOP for name in ("shared memory", "gloo"))
    return {
        "speedup": round(gloo / ours, 2),
        "latency_ratio": round(small / gloo_small, 3),
        "large_ms": round(ours * 1e3, 1),
        "gloo_large_ms": round(gloo * 1e3, 1),
        "small_us": round(small * 1e6, 1),
        "gloo_small_us": round(gloo_small * 1e6, 1),
        "shared_memory_mib": max(spans["shared memory bytes"][0][0] for spans in said) / 2**20,
    }


def median(said: list[Spans], what: str) -> float:
    """Seconds from the first rank's start to the last one's end; the first time warms up."""
    rounds = list(zip(*(spans[what] for spans in said), strict=True))[1:]
    return statistics.median(
        max(end for _, end in spans) - min(start for start, _ in spans) for spans in rounds
    )


def work(rank: int, world: int, store: str, pipe: Any) -> None:
    """One rank."""
    # gloo prints a line a rank, from C++, to where the JSON goes.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    import torch
    import torch.distributed as dist

    from neuron_sim.interconnect.communicator import Communicator
    from neuron_sim.settings import Identity

    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(store, world), rank=rank, world_size=world)
    communicator = Communicator(Identity(rank, world, rank, world), SHARED_MEMORY_BYTES, 300)
    group = list(range(world))

    def shared(tensor: torch.Tensor) -> None:
        communicator.announce(group, f"all_reduce sum of {list(tensor.shape)} at collectives.py:{rank}")
        communicator.all_reduce_(tensor, "sum", group)

    spans: Spans = {}
    large = torch.empty(LARGE)
    total = world * (world + 1) / 2
    for name, function in (("shared memory", shared), ("gloo", dist.all_reduce)):
        spans[f"{name} large"] = []
        for _ in range(REPEATS + 1):
            large.fill_(rank + 1)
            spans[f"{name} large"].append(timed(function, large, 1))
            if not bool((large == total).all()):
                raise SystemExit(f"{name}: rank {rank} has {large}, not {total} everywhere")
    del large
    for name, function in (("shared memory", shared), ("gloo", dist.all_reduce)):
        spans[f"{name} small"] = [timed(function, torch.zeros(SMALL), LOOP) for _ in range(LOOPS + 1)]
        small = torch.full((SMALL,), float(rank + 1))
        function(small)
        if not bool((small == total).all()):
            raise SystemExit(f"{name}: rank {rank} has {small}, not {total} everywhere")
    spans["shared memory bytes"] = [(float(communicator.shared_memory_bytes), 0.0)]
    pipe.send(spans)
    dist.barrier()


def timed(function: Callable[[Any], Any], tensor: Any, times: int) -> tuple[float, float]:
    """When it began and ended; all ranks begin together."""
    import torch.distributed as dist

    dist.barrier()
    started = time.perf_counter()
    for _ in range(times):
        function(tensor)
    return started, time.perf_counter()


if __name__ == "__main__":
    main()
