"""Lines in the form that the Neuron wrapper around the compiler prints, on standard output.

Form and stream: AWS Neuron documentation, "Neuron Persistent Cache", and public logs such as
those in deepjavalibrary/djl-serving#1879: ``2024-05-07 23:40:45.000207:  187  INFO
||NEURON_CC_WRAPPER||: Using a cached neff at ...``, with milliseconds in six digits.
"""

from __future__ import annotations

import os
import sys
from datetime import datetime

CACHE = "NEURON_CACHE"
WRAPPER = "NEURON_CC_WRAPPER"
PARALLEL = "NEURON_PARALLEL_COMPILE"
ANALYZE = "ANALYZE"


def line(level: str, part: str, message: str) -> str:
    """One line, with this moment and this process."""
    now = datetime.now()
    return f"{now:%Y-%m-%d %H:%M:%S}.{now.microsecond // 1000:06d}:  {os.getpid()}  {level} ||{part}||: {message}"


def info(part: str, message: str) -> None:
    """Print one line; whole, so that the lines of several processes do not mix."""
    plain(line("INFO", part, message))


def warning(part: str, message: str) -> None:
    """Print one line of what needs attention."""
    plain(line("WARNING", part, message))


def plain(text: str) -> None:
    """Print what the compiler itself prints: without time and process."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
