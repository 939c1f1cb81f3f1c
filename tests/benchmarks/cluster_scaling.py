"""A small BERT on 1, 2 and 4 nodes of a cluster of this machine, beside the model's table of AWS's BERT-Large.

    python tests/benchmarks/cluster_scaling.py [--updates 20] [--rounds 2]

Makes a cluster of the post's shape with 4 static nodes of 2 simulated cores, and trains by `sbatch` and torchrun.
Weak: each worker keeps its passes. Strong: the global batch stays, `GRAD_ACCUM` is divided by the nodes. **All nodes
share this machine's processors**, so nothing gets faster on more of them: what is measured is what more nodes cost the
simulation. What real nodes would do is modelled, below it. Prints one JSON object:

    measured   samples/s of all workers together, from the median update of all rounds, and beside one node's; processor
               time of all workers, which other load changes less
    modelled   AWS's job (BERT-Large, sequence 128, bf16, LAMB) on 1 to 64 trn1.32xlarge with 80 % intervals, and what
               AWS printed of the same nodes and batch; these rows are in the calibration
    left_out   each figure that AWS printed, predicted by constants that were fitted without any of BERT-Large
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import shlex
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "sdk"), str(ROOT / "local_backend")]

from tests.cluster.cluster import Cluster  # noqa: E402 - where it is was said just now
from tests.fakes.cluster import POST  # noqa: E402

from windtunnel.priceperf import FullScale, Workload, scaling  # noqa: E402
from windtunnel.priceperf.money.scaling import ScalingMode  # noqa: E402
from windtunnel.priceperf.published.bert_scaling import PUBLISHED, Held, held  # noqa: E402
from windtunnel.reports.cluster import published  # noqa: E402

SCRIPTS = ROOT / "tests" / "benchmarks" / "scripts"
NODES = (1, 2, 4)
CORES = 2
GRAD_ACCUM = 8
"""Passes of an update of one node's workers."""
WARM_UPDATES = 4
"""Left out: graphs are compiled in the first ones."""
LAMB_BATCH, LAMB_PASSES, NEURON_VERSION = 65536, 128, "2.23"
"""Of AWS's script with LAMB on one node, and the Neuron version of its weak figure; strong scaling keeps the batch,
weak the passes."""


def main() -> None:
    """Measure on a cluster of the benchmark's own, and model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.updates <= WARM_UPDATES or arguments.rounds < 1:
        raise SystemExit(f"--updates must be more than {WARM_UPDATES}, and --rounds at least 1")
    with tempfile.TemporaryDirectory() as folder:
        static = POST.replace("MinCount: 1\n", f"MinCount: {max(NODES)}\n")
        cluster = Cluster(Path(folder), "scaling", static)
        try:
            found = measured(cluster, arguments.rounds, arguments.updates)
        finally:
            cluster.delete()
    print(json.dumps({**found, **modelled()}, indent=2))


def measured(cluster: Cluster, rounds: int, updates: int) -> dict[str, Any]:
    """All jobs of a round in turn, so that none gets the quieter machine."""
    began = time.monotonic()
    cluster.create()
    created_s = time.monotonic() - began
    for name in ("cluster_bert.sh", "cluster_bert.py"):
        shutil.copy2(SCRIPTS / name, cluster.folder / "home" / "ubuntu" / name)
    jobs = [(mode, nodes) for mode in ("weak", "strong") for nodes in NODES]
    runs: dict[tuple[str, int], list[Run]] = {job: [] for job in jobs}
    for number in range(rounds):
        for mode, nodes in jobs:
            runs[mode, nodes].append(Run(cluster, mode, nodes, f"{mode}-{nodes}-{number}", updates))
    one_node = {mode: samples_per_second(runs[mode, 1]) for mode in ("weak", "strong")}
    return {
        "processor": processor(),
        "processors": len(os.sched_getaffinity(0)),
        "nodes_share_these_processors": True,
        "cores_a_node": CORES,
        "cluster_created_s": round(created_s, 1),
        "model_parameters": runs["weak", 1][0].parameters,
        "rounds": rounds,
        "measured": {
            mode: [
                {
                    "nodes": nodes,
                    "workers": nodes * CORES,
                    "passes": passes(mode, nodes),
                    "global_batch": runs[mode, nodes][0].samples,
                    "samples_per_second": round(samples_per_second(runs[mode, nodes])),
                    "beside_one_node": round(samples_per_second(runs[mode, nodes]) / one_node[mode], 2),
                    "processor_seconds_per_1000_samples": round(
                        1000
                        * statistics.mean(run.processor_s for run in runs[mode, nodes])
                        / runs[mode, nodes][0].samples,
                        2,
                    ),
                    "of_each_round": [round(samples_per_second([run])) for run in runs[mode, nodes]],
                    "job_s": round(statistics.median(run.job_s for run in runs[mode, nodes]), 1),
                }
                for nodes in NODES
            ]
            for mode in ("weak", "strong")
        },
    }


def passes(mode: str, nodes: int) -> int:
    """Of an update, on each worker."""
    return GRAD_ACCUM if mode == "weak" else GRAD_ACCUM // nodes


class Run:
    """One job to its end; leaves with its output when it failed, or did not train one model."""

    def __init__(self, cluster: Cluster, mode: str, nodes: int, name: str, updates: int) -> None:
        """Submit, wait and read."""
        output = cluster.folder / "home" / "ubuntu" / name
        script = f"./cluster_bert.sh --output {name} --grad_accum {passes(mode, nodes)} --updates {updates}"
        began = time.monotonic()
        number = cluster.sbatch(f"--exclusive --nodes={nodes} --wrap {shlex.quote(f'srun {script}')}")
        ended = cluster.wait_for_job(number)
        self.job_s = time.monotonic() - began
        ranks = [json.loads(path.read_text()) for path in sorted(output.glob("rank-*.json"))]
        ways = {json.dumps(rank["parameters"]) for rank in ranks}
        if ended[0] != "COMPLETED" or len(ranks) != nodes * CORES or len(ways) != 1:
            said = cluster.ssh(f"tail -n 60 slurm-{number}.out")
            raise SystemExit(
                f"job {name} is {ended[0]}: {len(ranks)} of {nodes * CORES} workers ended, with {len(ways)} different "
                f"sets of parameters. Its output ends:\n{said}"
            )
        ends = [max(each) for each in zip(*(rank["ends"] for rank in ranks), strict=True)][WARM_UPDATES - 1 :]
        self.update_s = [after - before for before, after in itertools.pairwise(ends)]
        self.processor_s = sum(
            rank["processor_seconds"][-1] - rank["processor_seconds"][WARM_UPDATES - 1] for rank in ranks
        ) / len(self.update_s)
        self.samples: int = ranks[0]["samples_of_an_update"]
        self.parameters: int = ranks[0]["parameter_count"]


def samples_per_second(runs: list[Run]) -> float:
    """Of all workers together, in the median update."""
    return runs[0].samples / statistics.median(seconds for run in runs for seconds in run.update_s)


def processor() -> str:
    """As it names itself."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def modelled() -> dict[str, Any]:
    """AWS's job on real nodes, and how right the model is on what AWS printed."""
    figures = held()
    training = PUBLISHED[0].row.training
    job = Workload.transformer(
        training.architecture,
        parameters=training.parameters,
        microbatch=training.microbatch,
        sequence_length=training.sequence_length,
        gradient_accumulation=LAMB_PASSES,
        dtype="bf16",
        optimizer="lamb",
        recompute=training.recompute,
        attention="eager",
        head_part=training.head_part,
        neuron_version=NEURON_VERSION,
    )
    return {
        "modelled": {
            "job": f"BERT-Large, sequence 128, bf16, LAMB, batch {LAMB_BATCH:,} on one node, Neuron {NEURON_VERSION}",
            "weak": table(job, "weak", figures),
            "strong": table(job, "strong", figures),
        },
        "left_out": [published.data(item) for item in figures],
    }


def table(job: Workload, mode: ScalingMode, figures: tuple[Held, ...]) -> list[dict[str, Any]]:
    """On 1 to 64 nodes; where AWS printed the same nodes and batch with LAMB in bf16, its figure too."""
    rows = []
    for row in scaling(job, "trn1.32xlarge", mode=mode, full_scale=FullScale(LAMB_BATCH * 7038)).rows:
        if row.estimate is None or row.global_batch is None:
            rows.append({"nodes": row.instances, "cannot_run": row.reason})
            continue
        short_s, long_s = row.estimate.step_interval_s
        aws = [
            item.published.published
            for item in figures
            if (item.published.optimizer, item.published.format) == ("LAMB", "bf16")
            and (item.published.row.nodes, item.published.row.training.global_batch)
            == (row.instances, row.global_batch)
            and item.published.row.training.sequence_length == job.tokens_per_sample
        ]
        rows.append(
            {
                "nodes": row.instances,
                "global_batch": round(row.global_batch),
                "samples_per_second": round(row.estimate.samples_per_s),
                "interval": [round(row.global_batch / long_s), round(row.global_batch / short_s)],
                "aws_printed": aws[0] if aws else None,
            }
        )
    return rows


if __name__ == "__main__":
    main()
