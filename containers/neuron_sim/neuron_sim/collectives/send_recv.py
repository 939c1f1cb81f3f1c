"""send and recv: a tensor from one core of a host to another, over a channel."""

from __future__ import annotations

import time
from typing import Any

import torch

from neuron_sim.collectives.operation import communicator, of_xlac, shapes_of
from neuron_sim.counters import recorder, script_lines
from neuron_sim.device.transfer import assign, to_device, to_host


@of_xlac
def send(value: torch.Tensor, token: Any, channel_id: int) -> tuple[torch.Tensor, Any]:
    """`_xla_send`."""
    (host,) = to_host([value])
    started = time.perf_counter()
    communicator().send(host, channel_id, _over("send", host, channel_id))
    recorder.counting.collective("send", host.nbytes, time.perf_counter() - started)
    return to_device(host, value), token


@of_xlac
def recv(output: torch.Tensor, token: Any, channel_id: int) -> tuple[torch.Tensor, Any]:
    """`_xla_recv`: what arrives is the result, and becomes the value of ``output`` too."""
    started = time.perf_counter()
    text = _over("recv", output, channel_id)
    host = communicator().receive(output.shape, output.dtype, channel_id, text)
    recorder.counting.collective("recv", host.nbytes, time.perf_counter() - started)
    assign(output, host)
    return to_device(host, output), token


def _over(name: str, tensor: torch.Tensor, channel_id: int) -> str:
    return f"{name} on channel {channel_id} of {shapes_of([tensor])} at {script_lines.calling_line()}"
