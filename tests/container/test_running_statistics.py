"""BatchNorm's statistics at the end, of cores that train one model on other batches each."""

from __future__ import annotations

import pytest
from conftest import records

SCRIPT = """\
import sys, time
import torch, torch_xla
import torch.distributed as dist
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend
import torch_xla.runtime as xr

def main(how, rank):
    torch.manual_seed(0)
    device = torch_xla.device()
    model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.BatchNorm1d(4))
    model = model.to(device)
    inner = model
    if how == "copied":  # with statistics of its own, as of a mean of weights or a second player
        copy = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.BatchNorm1d(4, momentum=1.0)).to(device)
        copy(torch.randn(16, 8).to(device) + rank)
    if how == "wrapped":
        dist.init_process_group("xla")
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(16, 8).to(device)).square().sum().backward()
        optimizer.step() if how == "wrapped" else xm.optimizer_step(optimizer)
        torch_xla.sync()
    if how == "taken":  # to evaluate with each batch's own
        inner[1].running_mean = inner[1].running_var = None
    if how == "sent":
        xm.broadcast_master_param(inner)
    if how in ("averaged", "copied"):
        statistics = [each for each in inner.buffers() if each.is_floating_point()]
        xm.all_reduce(xm.REDUCE_SUM, statistics, scale=1 / xr.world_size())
    torch_xla.sync()
    time.sleep(rank / 2)

main(sys.argv[1], xr.global_ordinal())
"""


@pytest.mark.parametrize("how", ["own", "wrapped", "sent", "averaged", "copied", "taken"])
def test_other_statistics_at_the_end_are_noted(torchrun, tmp_path, how):
    """Of a model that a function has let go of, and though the other core ends later. Not if the script, or
    DistributedDataParallel, makes them equal, or if none are left; nor of a model that is not trained.
    """
    script = tmp_path / "trains.py"
    script.write_text(SCRIPT)
    launch = torchrun(str(script), how, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    found = {record["finding"]: record for record in records(tmp_path, "finding")}
    assert launch.code == 0 and "Exception ignored" not in launch.output
    assert set(found) == ({"running_statistics"} if how == "own" else set()), launch.output
    if how == "own":
        told = found["running_statistics"]
        assert (told["severity"], told["line"]) == ("note", "trains.py:12")
        assert "ranks 0 and 1 end with other running statistics of BatchNorm (1)" in told["message"]
        assert "Before evaluating and before saving, call xm.all_reduce(" in launch.output


def test_an_earlier_launch_of_the_job_is_not_compared(torchrun, tmp_path):
    """What its second core has left is there until that of this launch trains."""
    script = tmp_path / "trains.py"
    script.write_text(SCRIPT)
    torchrun(str(script), "own", WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    launch = torchrun(str(script), "averaged", WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    assert "running statistics" not in launch.output
