"""What cores compare of their first weights, where each has computed its updates at another step."""

from __future__ import annotations

import pytest
import torch

from neuron_sim.diagnostics.meeting import Meeting
from neuron_sim.diagnostics.unequal_weights import UnequalWeights


class OnDevice(torch.nn.Parameter):
    """As a parameter that has moved to the device."""

    is_xla = True


class Core:
    """One rank with a model of its own; ``computed``: before which steps the latest update is there."""

    def __init__(self, folder, rank, computed, *weights):
        self.model = torch.nn.Module()
        for number, weight in enumerate(weights):
            value = torch.Tensor._make_subclass(OnDevice, torch.full((4, 4), weight), True)
            self.model.register_parameter(f"weight{number}", value)
        self.optimizers = [torch.optim.SGD([weight], lr=0.1) for weight in self.model.parameters()]
        self.steps, self.computed = 0, computed
        self.compared = UnequalWeights(Meeting(folder, rank), self.look)

    def look(self, weight):
        return weight.detach().as_subclass(torch.Tensor) if self.steps in self.computed else None

    def step(self):
        self.steps += 1
        for optimizer in self.optimizers:
            self.compared.before_step(optimizer)


@pytest.mark.parametrize("computed", [{2}, {3, 4}, {5}, {2, 5}])
def test_cores_that_are_late_at_other_steps_are_compared_by_one_that_both_have(tmp_path, computed):
    first, second = Core(tmp_path, 0, {2, 3, 4, 5}, 1.0), Core(tmp_path, 1, computed, 3.0)
    for _ in range(6):
        first.step()
        second.step()
    assert first.compared.other([1])[1:] == (1, ["weight0"])
    assert second.compared.other([0])[1:] == (0, ["weight0"])


def test_steps_that_one_alone_has_say_nothing(tmp_path):
    first, second = Core(tmp_path, 0, {2, 3}, 1.0), Core(tmp_path, 1, {4, 5}, 3.0)
    for _ in range(6):
        first.step()
        second.step()
    assert first.compared.other([1]) is None


def test_other_weights_by_the_same_names_are_those_of_other_parts_of_a_model(tmp_path):
    """As of two stages of a pipeline, one of which has a layer more."""
    cores = [Core(tmp_path, rank, {2}, *weights) for rank, weights in enumerate([(1.0,), (3.0, 1.0)])]
    for core in cores:
        core.optimizers = [torch.optim.SGD(core.model.parameters(), lr=0.1)]
    for _ in range(3):
        for core in cores:
            core.step()
    assert cores[0].compared.other([1]) is None


@pytest.mark.parametrize(("weights", "named"), [((1.0, 3.0), ["weight1"]), ((1.0, 1.0), None)])
def test_each_optimizer_is_compared_with_its_like(tmp_path, weights, named):
    first, second = Core(tmp_path, 0, {3}, 1.0, 1.0), Core(tmp_path, 1, {2, 3}, *weights)
    for _ in range(6):
        first.step()
        second.step()
    found = first.compared.other([1])
    assert (found and found[2]) == named
