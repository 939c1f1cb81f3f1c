"""Runs torchrun or a script in a fork of the suite's server, as a kept container runs its jobs.

    forked.py torchrun --nproc_per_node 2 train.py
    forked.py script.py WORDS...

A start then costs a tenth: torch and torch_xla are imported already. Where the server refuses,
because the environment is another one than it has imported them in, a new process starts.
"""

import os
import shutil
import sys

from neuron_sim.warm import fork_client

PROGRAM = "suite"
FLAGS = "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
"""Code that computes for a moment need not be good, but soon there, and in one piece: beside other tests there is no
processor that is free for another.
"""


def main() -> int:
    """Blocks until the program's end; its exit code."""
    words = sys.argv[1:]
    os.environ.setdefault("XLA_FLAGS", FLAGS)
    is_launch = words[0] == "torchrun"
    if is_launch:
        words[0] = shutil.which("torchrun") or sys.exit("there is no torchrun")
    code = fork_client.run(PROGRAM, words)
    if code is None:
        print("forked.py: a new process after all", file=sys.stderr, flush=True)
        os.execv(sys.executable, [sys.executable, *words])  # noqa: S606 - as the shell would do it
    return code


if __name__ == "__main__":
    sys.exit(main())
