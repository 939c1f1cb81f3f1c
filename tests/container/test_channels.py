"""Tensors sent over channels between real processes: what arrives, and what ends the wait when nothing can."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
import torch
from collective_pool import LONGEST_S, Pool

from neuron_sim.errors import MismatchError, PeerLostError
from neuron_sim.interconnect.region import LETTERS

DTYPES = (torch.float32, torch.bfloat16, torch.bool, torch.int64, torch.float8_e4m3fn, torch.complex64)
SHAPES = ((), (0, 3), (5,), (3, 1, 7), (1_000_000,))


def payload(dtype, shape):
    """Bits that differ from tensor to tensor; both sides can compute them."""
    count = torch.Size(shape).numel()
    if dtype == torch.bool:
        return (torch.arange(count) % 3 == 0).reshape(shape)
    return (torch.arange(count) % 13).to(dtype).reshape(shape)


def all_payloads():
    return [payload(dtype, shape) for dtype in DTYPES for shape in SHAPES][:LETTERS]


def send_all(communicator, channel, text):
    for tensor in all_payloads():
        communicator.send(tensor, channel, text)


def receive_all(communicator, channel, text):
    """How many have arrived bit by bit, in the order sent."""
    right = 0
    for tensor in all_payloads():
        got = communicator.receive(tensor.shape, tensor.dtype, channel, text)
        same = got.reshape(-1).view(torch.uint8).equal(tensor.reshape(-1).view(torch.uint8))
        right += got.shape == tensor.shape and got.dtype == tensor.dtype and same
    return right


def many(communicator, send, count):
    """So many tensors of 100 kB one way; more than can wait at once."""
    for number in range(count):
        if send:
            communicator.send(torch.full((25_000,), float(number)), 3, "send at a.py:1")
        else:
            got = communicator.receive((25_000,), torch.float32, 3, "recv at a.py:2")
            assert got.eq(number).all(), (number, got)
    return len(list(Path("/proc/self/fd").iterdir()))


def test_any_dtype_and_size_arrives_in_order_and_nobody_need_wait_to_send():
    """Both send all before they receive, over a shared memory that is smaller than one of the tensors."""
    with Pool(2) as pool:
        pool.call([0, 1], send_all, [(1, "send at a.py:1"), (2**63 + 5, "send at a.py:1")])
        counts = pool.call([0, 1], receive_all, [(2**63 + 5, "recv at a.py:2"), (1, "recv at a.py:2")])
        assert counts == [len(all_payloads())] * 2


def test_channels_do_not_mix_and_other_collectives_go_on_between():
    """What is fetched is chosen by channel, not by age; an all_reduce passes what still waits."""
    with Pool(2) as pool:
        for channel in (7, 8):
            pool.call([0], "send", [(torch.tensor(channel), channel, "send at a.py:1")])
        both = [(torch.ones(50_000), "sum", [0, 1])] * 2
        for total in pool.call([0, 1], "all_reduce", both):
            assert total.eq(2).all()
        for channel in (8, 7):
            (got,) = pool.call([1], "receive", [((), torch.int64, channel, "recv at a.py:2")])
            assert int(got) == channel


def test_a_sender_waits_for_the_receiver_rather_than_keep_ever_more():
    """Files and memory of what has been received are given back."""
    with Pool(2) as pool:
        descriptors = pool.call([0, 1], many, [(True, 200), (False, 200)])
        assert max(descriptors) < LETTERS + 30


def test_another_shape_or_dtype_is_an_error_with_both_lines():
    """The message has what each side said."""
    with Pool(2) as pool:
        for channel, (shape, dtype) in enumerate((((4,), torch.float32), ((2, 2), torch.bfloat16))):
            pool.call([0], "send", [(torch.ones(2, 2), channel, "send of float32[2, 2] at a.py:1")])
            (answer,) = pool.call([1], "receive", [(shape, dtype, channel, "recv of another at b.py:2")])
            assert isinstance(answer, MismatchError)
            assert "rank 0: send of float32[2, 2] at a.py:1" in str(answer)
            assert "rank 1: recv of another at b.py:2" in str(answer)


@pytest.mark.parametrize("known", [False, True])
def test_a_killed_sender_ends_the_wait(known):
    """Whether or not it has sent on the channel before."""
    with Pool(3) as pool:
        pool.call([0, 1, 2], "join", [()] * 3)
        if known:
            pool.call([0], "send", [(torch.ones(2), 4, "send at a.py:1")])
            pool.call([1], "receive", [((2,), torch.float32, 4, "recv at b.py:2")])
        pool.start(1, "receive", (2,), torch.float32, 4, "recv on channel 4 at b.py:2")
        time.sleep(0.2)
        os.kill(pool.processes[0].pid, signal.SIGKILL)
        assert pool.pipes[1].poll(LONGEST_S)
        answer = pool.answer(1)
        assert isinstance(answer, PeerLostError)
        assert "rank 0 exited with signal SIGKILL (9)" in str(answer)
        assert "rank 1 waited in recv at b.py:2" in str(answer)


def test_what_a_rank_sent_before_it_left_still_arrives_and_then_the_wait_ends():
    """A sender whose script is over stays until all is received; a receiver does not wait for one that left."""
    with Pool(2) as pool:
        pool.call([0, 1], "join", [()] * 2)
        pool.call([0], "send", [(torch.ones(2), 4, "send at a.py:1")])
        pool.start(0, "leave")
        assert not pool.pipes[0].poll(0.3)
        (got,) = pool.call([1], "receive", [((2,), torch.float32, 4, "recv at b.py:2")])
        assert got.equal(torch.ones(2))
        assert pool.pipes[0].poll(LONGEST_S)
        assert pool.answer(0) is None
        (answer,) = pool.call([1], "receive", [((2,), torch.float32, 4, "recv at b.py:2")])
        assert isinstance(answer, PeerLostError) and "rank 0 ended: its script" in str(answer)


def test_ranks_that_all_wait_are_told():
    """One receives on a channel that the other, in an all_reduce with it, will not send on."""
    with Pool(2) as pool:
        pool.start(1, "agree", [0, 1], "all_reduce of x at train.py:20")
        pool.start(0, "receive", (2,), torch.float32, 4, "recv on channel 4 at train.py:10")
        assert pool.pipes[0].poll(LONGEST_S)
        answer = pool.answer(0)
        assert isinstance(answer, MismatchError)
        assert "rank 0: recv on channel 4 at train.py:10" in str(answer)
        assert "rank 1: all_reduce of x at train.py:20" in str(answer)


def test_the_time_out_holds_for_a_channel_too():
    """The other rank lives and is busy elsewhere."""
    with Pool(2, timeout_s=10) as pool:
        pool.call([0, 1], "join", [()] * 2)
        pool.start(0, "receive", (2,), torch.float32, 4, "recv on channel 4 at a.py:1")
        assert pool.pipes[0].poll(LONGEST_S)
        answer = pool.answer(0)
        assert isinstance(answer, PeerLostError)
        assert "send on channel 4 within 10 s (rank 1 is not in a collective)" in str(answer)
