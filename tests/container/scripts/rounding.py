"""Rounds fp32 values of the device to bf16 or fp16 in bulk, and says what came out, against neighbours computed by hand."""

import sys

import torch
import torch_xla
from saying import say

ROUNDINGS = 100_000
VALUES = {
    "ordinary": 1.001,
    "negative": -3.1415926,
    "tie": 1.00390625,
    "small": 7.3e-6,
    "large": 65_537.25,
    "denormal": 1.2345e-39,
    "below the next power of two": 1.9999,
}
HALF_VALUES = {
    **VALUES,
    "tie": 1.00048828125,
    "large": 60_001.25,
    "denormal": 7.3e-6,
    "below the smallest normal": 6.1034e-5,
    "below the smallest denormal": 3e-8,
    "below half of it": 1.2345e-8,
}
HALF = sys.argv[2:] == ["fp16"]
DTYPE = torch.float16 if HALF else torch.bfloat16

device = torch_xla.device()


def neighbours(values):
    """The two values of the data type around each fp32 value, as fp32: the nearest, and the one on its other side."""
    near = values.to(DTYPE)
    off = values.double() - near.double()
    grows = torch.where((off > 0) == (values > 0), 1, -1)
    bits = near.view(torch.int16)
    far = torch.where(off == 0, bits, bits + grows).to(torch.int16).view(DTYPE)
    return near.float(), far.float()


def deviation(value):
    """How many standard errors the mean of many roundings is off."""
    exact = torch.full((ROUNDINGS,), value)
    near, far = (side[0].double().item() for side in neighbours(exact))
    exact = exact[0].double().item()
    rounded = exact_copy(exact)
    share = (exact - near) / (far - near)
    error = abs(far - near) * (share * (1 - share) / ROUNDINGS) ** 0.5
    assert set(rounded.unique().tolist()) == {near, far}, (value, rounded.unique(), near, far)
    return (rounded.mean().item() - exact) / error


def exact_copy(value):
    on_device = torch.full((ROUNDINGS,), value).to(device)
    return on_device.to(DTYPE).cpu().double()


def off_by_more_than_a_neighbour():
    """Of random bit patterns: how many finite ones became neither of their neighbours, or changed needlessly.

    fp16 has few exponents: all others are replaced by those from far below its denormals to its largest.
    """
    patterns = torch.randint(-(2**31), 2**31, (200_000,), generator=torch.Generator().manual_seed(1))
    if HALF:
        exponents = 95 + (patterns >> 23) % 48
        patterns = (patterns & ~(0xFF << 23)) | (exponents << 23)
    values = patterns.to(torch.int32).view(torch.float32)
    values = values[values.isfinite()]
    near, far = neighbours(values)
    bits = values.to(device).to(DTYPE).cpu().float().view(torch.int32)
    wrong = (bits != near.view(torch.int32)) & (bits != far.view(torch.int32))
    return int(wrong.sum())


def unchanged():
    """All 65,536 values of the data type pass through fp32 and back as they are; NaN stays NaN."""
    every = torch.arange(-(2**15), 2**15).to(torch.int16).view(DTYPE)
    back = every.float().to(device).to(DTYPE).cpu()
    same = (back.view(torch.int16) == every.view(torch.int16)) | (back.isnan() & every.isnan())
    hidden_nan = torch.tensor([0x7F800001, -0x7FFFFF], dtype=torch.int32).view(torch.float32)
    return int((~same).sum()), hidden_nan.to(device).to(DTYPE).cpu().isnan().all().item()


def summed(start):
    """AWS's own test: 0.5 is half of the last place, and round-to-nearest never adds it."""
    total = torch.tensor(start).to(DTYPE).to(device)
    for _ in range(256):
        total = total + 0.5
        torch_xla.sync()
    return total.item()


if sys.argv[1] == "nearest":
    say(values=sorted(set(exact_copy(1.001).tolist())), wrong=0)
elif sys.argv[1] == "compiled":
    cast = torch.compile(lambda values: values.to(torch.bfloat16) * 3.0, backend="openxla")
    on_device = torch.full((1000,), 1.001).to(device)
    say(values=[sorted(set(cast(on_device).cpu().tolist())) for _ in range(2)])
elif sys.argv[1] == "floats":
    computed = torch.full((2,), 1.001).to(device) * 1.0
    cast = computed.to(torch.bfloat16)
    say(computed=computed.cpu().tolist(), cast=(1.0 - cast).cpu().tolist())
elif sys.argv[1] == "draw":
    drawn = torch.linspace(1, 2, 4096).to(device).to(torch.bfloat16).cpu()
    say(drawn=drawn.view(torch.int16).long().mul(torch.arange(4096)).sum().item())
else:
    changed, nan = unchanged()
    say(
        deviations={
            name: round(deviation(value), 2) for name, value in (HALF_VALUES if HALF else VALUES).items()
        },
        changed=changed,
        nan=nan,
        wrong=off_by_more_than_a_neighbour(),
        added=summed(1024.0 if HALF else 128.0) - (1024.0 if HALF else 128.0),
    )
