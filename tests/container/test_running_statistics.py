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


@pytest.fixture
def trained(torchrun, tmp_path):
    """Runs the script, and gives its log and its findings by kind."""
    script = tmp_path / "trains.py"
    script.write_text(SCRIPT)

    def run(how: str) -> tuple[str, dict[str, dict]]:
        launch = torchrun(str(script), how, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
        assert "Exception ignored" not in launch.output
        return launch.output, {record["finding"]: record for record in records(tmp_path, "finding")}

    return run


def test_other_statistics_at_the_end_are_noted(trained):
    """Of a model that a function has let go of, and though the other core ends later."""
    log, found = trained("own")
    assert set(found) == {"running_statistics"}, log
    told = found["running_statistics"]
    assert (told["severity"], told["line"]) == ("note", "trains.py:12")
    assert "ranks 0 and 1 end with other running statistics of BatchNorm (1)" in told["message"]
    assert "Before evaluating and before saving, call xm.all_reduce(" in log
    # What the second core has left is there until that of the job's next launch trains.
    log, _ = trained("averaged")
    assert "running statistics" not in log


@pytest.mark.parametrize("how", ["wrapped", "sent", "copied", "taken"])
def test_statistics_that_are_made_equal_or_left_out_are_not(trained, how):
    """By the script or by DistributedDataParallel; nor are those of a model that is not trained."""
    log, found = trained(how)
    assert not found, log
