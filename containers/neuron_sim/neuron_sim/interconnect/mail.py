"""Tensors sent over a channel: the sender goes on at once, and the receiver fetches them when it needs them.

The two have only the channel's number in common. The sender keeps each tensor in a
nameless file until it has been fetched, and announces it in its own row of the region;
the receiver finds it by its channel and reads the file through the sender's entry in
/proc. Nothing is left behind, whichever process dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from neuron_sim.errors import MismatchError, PeerLostError
from neuron_sim.interconnect import futex
from neuron_sim.interconnect.arrival import Arrival
from neuron_sim.interconnect.peers import Peers
from neuron_sim.interconnect.region import LETTERS, Region

_HEAD_BYTES = 4096
_CHANNEL = 2**64 - 1


class _Letter(NamedTuple):
    """The place of a sent tensor in the region; ``number`` counts what that worker has sent."""

    worker: int
    place: int
    number: int


class Mail:
    """Sends this worker's tensors, and receives those that other workers have sent."""

    def __init__(self, region: Region, arrival: Arrival, peers: Peers) -> None:
        """Nothing is opened before the first tensor is sent."""
        self._region = region
        self._arrival = arrival
        self._peers = peers
        self._me = region.index
        self._files: dict[int, int] = {}
        self._texts: dict[int, str] = {}
        self._senders: dict[int, int] = {}
        self._number = 0

    def send(self, tensor: torch.Tensor, channel: int, text: str) -> None:
        """Leave a contiguous tensor to be fetched. Blocks only while LETTERS earlier ones wait to be fetched.

        Raises:
            PeerLostError: nobody is left to fetch those, or nobody has come in time.
        """
        self._arrival.busy(text)
        try:
            if self._waiting() == LETTERS:
                self._arrival.await_post(
                    lambda: self._waiting() < LETTERS,
                    lambda waited_s: self._peers.silence(None, "receive what has been sent", waited_s),
                )
            free = next(place for place in range(LETTERS) if place not in self._files)
            descriptor = os.memfd_create("neuron_sim-sent", os.MFD_CLOEXEC)
            self._files[free], self._texts[free] = descriptor, text
            head = json.dumps({"dtype": str(tensor.dtype), "shape": list(tensor.shape), "text": text})
            os.pwrite(descriptor, head.encode()[:_HEAD_BYTES], 0)
            _write(descriptor, tensor)
            self._number += 1
            letter = self._region.letters[self._me, free]
            letter[1], letter[2], letter[3] = channel & _CHANNEL, descriptor, os.getpid()
            futex.fence()
            self._arrival.post(letter[:1], self._number)
        finally:
            self._arrival.finish()

    def receive(self, shape: Sequence[int], dtype: torch.dtype, channel: int, text: str) -> torch.Tensor:
        """The oldest tensor that another worker has sent on the channel; blocks until there is one.

        Raises:
            MismatchError: it has another shape or dtype, or all ranks wait and nobody can send.
            PeerLostError: its sender has ended, or nobody has sent in time.
        """
        self._arrival.busy(text)
        try:
            while True:
                self._arrival.await_post(
                    lambda: bool(self._sent_on(channel)),
                    lambda waited_s: self._peers.silence(
                        self._senders.get(channel), f"send on channel {channel}", waited_s
                    ),
                )
                for letter in self._sent_on(channel):
                    result = self._fetch(letter, shape, dtype, channel, text)
                    if result is not None:
                        self._senders[channel] = letter.worker
                        return result
        finally:
            self._arrival.finish()

    def linger(self) -> list[str]:
        """Block until all that was sent has been fetched, or nobody is left to do so. Returns what was not fetched.

        Call when this worker counts as ended already: so two that linger do not wait for each other.
        """
        with contextlib.suppress(PeerLostError):
            self._arrival.await_post(lambda: not self._waiting(), self._peers.nobody_left)
        return list(self._texts.values())

    def _waiting(self) -> int:
        """How many tensors have not been fetched. Closes the files of those that have been."""
        letters, fetched = self._region.letters, self._region.fetched
        for place in list(self._files):
            if letters[self._me, place, 0] == fetched[self._me, place]:
                os.close(self._files.pop(place))
                del self._texts[place]
        return len(self._files)

    def _sent_on(self, channel: int) -> list[_Letter]:
        """Tensors of others on the channel that nobody has fetched; each sender's oldest first."""
        letters, fetched = self._region.letters, self._region.fetched
        there = (letters[:, :, 0] > fetched) & (letters[:, :, 1] == np.uint64(channel & _CHANNEL))
        there[self._me] = False
        found = [
            _Letter(worker, place, int(letters[worker, place, 0]))
            for worker, place in np.argwhere(there).tolist()
        ]
        return sorted(found, key=lambda letter: (letter.worker, letter.number))

    def _fetch(
        self, letter: _Letter, shape: Sequence[int], dtype: torch.dtype, channel: int, text: str
    ) -> torch.Tensor | None:
        """Fetch a tensor for this worker alone; None when another receiver was quicker."""
        _, _, number, pid = self._region.letters[letter.worker, letter.place].tolist()
        fetched = self._region.fetched[letter.worker]
        try:
            descriptor = os.open(f"/proc/{pid}/fd/{number}", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            if fetched[letter.place] >= letter.number:
                return None
            raise PeerLostError(
                f"{self._peers.name(letter.worker)} ended before what it had sent on channel {channel} was received"
            ) from error
        try:
            # One channel may have two receivers: each tensor is for one of them.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if fetched[letter.place] >= letter.number:
                return None
            head = json.loads(os.pread(descriptor, _HEAD_BYTES, 0).rstrip(b"\0"))
            if (head["dtype"], head["shape"]) != (str(dtype), list(shape)):
                raise MismatchError(
                    f"what is sent and received on channel {channel} differs:\n"
                    f"  {self._peers.name(letter.worker)}: {head['text']}\n"
                    f"  {self._peers.name(self._me)}: {text}\n"
                    "Give xm.recv a tensor of the shape and dtype that xm.send is given."
                )
            result = torch.empty(tuple(shape), dtype=dtype)
            _read(descriptor, result)
            # Frees the memory now, and not when the sender next looks.
            os.ftruncate(descriptor, 0)
            self._arrival.post(fetched[letter.place : letter.place + 1], letter.number)
            return result
        finally:
            os.close(descriptor)


def _bytes_of(tensor: torch.Tensor) -> memoryview:
    return memoryview(tensor.reshape(-1).view(torch.uint8).numpy())


def _write(descriptor: int, tensor: torch.Tensor) -> None:
    data = _bytes_of(tensor)
    os.ftruncate(descriptor, _HEAD_BYTES + len(data))
    offset = 0
    while offset < len(data):
        offset += os.pwrite(descriptor, data[offset:], _HEAD_BYTES + offset)


def _read(descriptor: int, into: torch.Tensor) -> None:
    data = _bytes_of(into)
    offset = 0
    while offset < len(data):
        offset += os.preadv(descriptor, [data[offset:]], _HEAD_BYTES + offset)
