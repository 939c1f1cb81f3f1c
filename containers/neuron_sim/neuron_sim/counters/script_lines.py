"""Finds the line of the user's script that is running."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from types import FrameType

_OURS = str(Path(__file__).resolve().parents[1])
_PACKAGES = tuple(
    dict.fromkeys(
        f"{folder}/"
        for folder in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path)
        if folder.endswith("/site-packages")
    )
)
"""Several folders if a user's environment lies on top of the image's, as on a cluster."""
_TORCH = tuple(f"{folder}{name}/" for folder in _PACKAGES for name in ("torch", "torch_xla"))
_OF_ITS_OWN = tuple(
    f"{folder}torch/{name}/" for folder in _PACKAGES for name in ("nn", "optim", "amp", "distributions")
)
_LIBRARIES = tuple(
    {
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib"),
        *_PACKAGES,
        "/usr/lib/python3",
        _OURS,
    }
)


def calling_line(frame: FrameType | None = None) -> str:
    """``train.py:88`` of the innermost frame outside libraries, or ``?``. ``frame``: where to start; default: here."""
    frame = frame or sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        if is_users(filename):
            return f"{Path(filename).name}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"


def calling_library() -> str:
    """``transformers/modeling_utils.py:88``: the innermost library line; ``""`` if the script itself is innermost.

    Of torch only its layers, optimizers, scalers and distributions count: the rest does what the script says, as in
    `print(tensor)`.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename):
        filename = frame.f_code.co_filename
        if file := _installed(filename) if filename.startswith(_OF_ITS_OWN) else library_file(filename):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def calling_torch() -> str:
    """``torch/utils/tensorboard/_convert_np.py``: torch's file that is innermost, or ``""``."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    filename = frame.f_code.co_filename if frame else ""
    return _installed(filename) if is_torchs(filename) else ""


def library_file(filename: str) -> str:
    """``transformers/modeling_utils.py`` for a file that pip has installed; ``""`` for others, torch's and our own."""
    return "" if is_torchs(filename) else _installed(filename)


def is_torchs(filename: str) -> bool:
    """Whether a file is torch's, torch_xla's or the simulator's."""
    return filename.startswith(_TORCH) or is_ours(filename)


def is_ours(filename: str) -> bool:
    """Whether a file is the simulator's."""
    return filename.startswith(_OURS)


def is_users(filename: str) -> bool:
    """Whether a file is the user's own, and neither a library's nor generated code."""
    return not filename.startswith((*_LIBRARIES, "<"))


def _installed(filename: str) -> str:
    folder = next((folder for folder in _PACKAGES if filename.startswith(folder)), None)
    name = "" if folder is None else filename.removeprefix(folder)
    return name if "/" in name else ""
