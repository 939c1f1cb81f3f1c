"""What is found among all objects, while other threads let go of tensors."""

from __future__ import annotations

import gc
import operator
import sys
import threading
import time
import warnings

import pytest
import torch

from neuron_sim.live_objects import live

TENSORS = frozenset((torch.Tensor, torch.nn.Parameter))
FOR_S = 2.0


@pytest.fixture
def churning():
    """Threads in which libtorch alone comes to hold tensors, and frees them without Python's lock."""
    ended = threading.Event()

    def churn() -> None:
        weight = torch.ones(64, 64, requires_grad=True)
        while not ended.is_set():
            views = [(weight * 2).view(-1) for _ in range(30)]
            loss = sum(view.square().sum() for view in views)
            del views
            loss.backward()

    gc.freeze()  # what is there already is not looked through: more looks
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=churn) for _ in range(3)]
    for thread in threads:
        thread.start()
    yield
    ended.set()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    gc.unfreeze()


def test_a_search_holds_no_tensor_that_another_thread_frees(churning, capfd):
    """PyTorch warns of each, in Python or on the process's own stderr. A loop in Python is warned of in a moment."""
    looks = 0
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        until = time.monotonic() + FOR_S
        while time.monotonic() < until:
            live(TENSORS.__contains__, operator.attrgetter("is_xla"))
            looks += 1
    assert looks > 100
    assert not [each for each in warned if "PyObject" in str(each.message)]
    assert "PyObject" not in capfd.readouterr().err


def test_what_is_wanted_is_found_in_every_generation_and_nothing_else():
    class Mine(list):
        pass

    gc.freeze()
    try:
        old, shut = Mine([1]), Mine()
        gc.collect()
        new = Mine([2])
        for turn, is_enabled in ((gc.disable, False), (gc.enable, True)):
            turn()
            assert sorted(map(id, live({Mine}.__contains__))) == sorted(map(id, (old, shut, new)))
            assert sorted(live({Mine}.__contains__, operator.truth)) == [[1], [2]]
            assert live({int}.__contains__) == []
            assert gc.isenabled() is is_enabled
        del old, shut, new
        gc.collect()
        assert live({Mine}.__contains__) == []
    finally:
        gc.enable()
        gc.unfreeze()
