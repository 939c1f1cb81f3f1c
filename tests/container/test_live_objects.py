"""What is found among all objects may be used, whoever else holds it and whenever they let go."""

from __future__ import annotations

import torch

from neuron_sim.live_objects import live_objects

SIZE = 12_347


def test_a_tensor_that_only_libtorch_held_outlives_it(capfd):
    """As a batch between a loader's threads; without a warning of PyTorch's about the object that is left over."""
    base = torch.ones(SIZE, requires_grad=True) * 2
    view = base.view(1, SIZE)
    del base
    (found,) = [thing for thing in live_objects() if type(thing) is torch.Tensor and thing.shape == (SIZE,)][
        -1:
    ]
    del view
    assert found.sum().item() == 2 * SIZE
    assert "PyObject" not in capfd.readouterr().err
