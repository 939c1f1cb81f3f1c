"""The time of memory traffic: bytes over what a core reaches of its bandwidth."""

from __future__ import annotations

from .catalog import InstanceType
from .compute import check_efficiency
from .errors import InvalidInput

STATE_BYTES_PER_PARAMETER = 5 * 4 + 28
"""Traffic of one parameter in one fp32 step, whatever the batch, as the counters count it.

The weight is an operand of two products (forward, backward), its gradient the
result of one; both pass the graph's edge once more (5 x 4 bytes). Adam takes
weight, gradient and two moments in and puts weight and moments out (7 x 4 bytes).
"""


def memory_seconds(bytes_moved: float, instance: InstanceType, efficiency: float) -> float:
    """Seconds one core moves bytes. ``efficiency``: the reached part of the bandwidth, 0 < e <= 1.

    Raises:
        InvalidInput: efficiency out of range or negative bytes.
    """
    check_efficiency(efficiency)
    if bytes_moved < 0:
        raise InvalidInput(f"bytes must be 0 or more, not {bytes_moved}")
    return bytes_moved / (instance.core_memory_bandwidth * efficiency)
