"""One graph in the compile cache.

    neuronxcc-<version>/MODULE_<graph>+<flags>/
        model.hlo_module.pb    the graph, an HloModuleProto
        model.hlo_module.txt   the same as text
        compile_flags.json     the flags of the compiler, a list
        model.neff             once compiled: a marker that says it is simulated; it holds no machine code
        model.done             beside a whole model.neff
        model.log              why the compilation failed, instead of these two

Files are written atomically, and `model.done` last, so a reader needs no lock. A writer
holds one: a file lock, which the system frees when its process dies.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from neuron_sim import __version__, atomic_file
from neuron_sim.compiler.flags import flags_hash
from neuron_sim.compiler.unsupported import Refusal, refusals

State = Literal["absent", "collected", "done", "failed"]
HLO = "model.hlo_module.pb"
_TEXT = "model.hlo_module.txt"
LOCK = "model.lock"
_METADATA = re.compile(r", metadata=\{(?:[^{}\"]|\"(?:[^\"\\]|\\.)*\")*\}")


@dataclass(frozen=True)
class Outcome:
    """What `Entry.compile` found or did. ``cached``: another process had compiled it by then."""

    cached: bool = False
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True)
class Entry:
    """An entry, by its folder. Its files are read only when they are asked for."""

    folder: Path

    @property
    def state(self) -> State:
        """How far the entry is."""
        for name, state in (("model.done", "done"), ("model.log", "failed"), (HLO, "collected")):
            if (self.folder / name).exists():
                return state  # type: ignore[return-value]
        return "absent"

    @property
    def neff(self) -> Path:
        """The compiled graph's file."""
        return self.folder / "model.neff"

    @property
    def hlo(self) -> Path:
        """The graph's file."""
        return self.folder / HLO

    @property
    def locked(self) -> bool:
        """Whether a process works on the entry now."""
        try:
            descriptor = os.open(self.folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    @property
    def text(self) -> str:
        """The graph as text.

        Raises:
            OSError: it cannot be read.
        """
        return (self.folder / _TEXT).read_text()

    def collect(self, hlo: str, module: bytes, flags: tuple[str, ...]) -> None:
        """Add the uncompiled graph, as text and as HloModuleProto, and its flags. Idempotent.

        Raises:
            OSError: the cache cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.lock():
            if not self.hlo.exists():
                atomic_file.write(self.folder / "compile_flags.json", json.dumps(list(flags)))
                atomic_file.write(self.folder / _TEXT, hlo)
                atomic_file.write(self.hlo, module)

    def compile(self, retry: bool = False) -> Outcome:
        """Go from collected to done or failed. An entry that is done, or failed without ``retry``, stays so.

        Blocks while another process compiles it.

        Raises:
            OSError: the cache cannot be read or written.
        """
        with self.lock():
            state = self.state
            if state == "done":
                return Outcome(cached=True)
            hlo = self.text
            why = refusals(hlo)
            if why:
                if state != "failed" or retry:
                    atomic_file.write(self.folder / "model.log", "".join(f"{refusal}\n" for refusal in why))
                return Outcome(refusals=why)
            with suppress(FileNotFoundError):
                (self.folder / "model.log").unlink()
            flags = json.loads((self.folder / "compile_flags.json").read_text())
            atomic_file.write(self.neff, _marker(hlo, flags))
            atomic_file.write(self.folder / "model.done", "")
            return Outcome()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold this entry; blocks while another process does. The folder must exist."""
        path = self.folder / LOCK
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # If the previous holder has removed the file, this lock is on a deleted file: try again.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    break
            os.close(descriptor)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            os.close(descriptor)


def entry(entries: Path, hlo: str, flags: tuple[str, ...]) -> Entry:
    """The entry of a graph compiled with ``flags``, present or not."""
    return Entry(entries / f"MODULE_{graph_hash(hlo)}+{flags_hash(flags)}")


def entries(folder: Path) -> list[Entry]:
    """All entries below a compiler's folder, by name."""
    return [Entry(path) for path in sorted(folder.glob("MODULE_*+*")) if path.is_dir()]


def graph_hash(hlo: str) -> int:
    """A graph's hash, which is the same in every process; torch_xla's own hash is not.

    It is made from the HLO without its metadata, which names files and lines of the script.
    """
    digest = hashlib.sha256(_METADATA.sub("", hlo).encode()).digest()
    return int.from_bytes(digest[:8], "big")


def module_of(hlo_proto: bytes) -> bytes:
    """The HloModuleProto in an HloProto, which has it as its first field; empty when there is none."""
    if hlo_proto[:1] != b"\x0a":  # field 1, length-delimited
        return b""
    length = shift = 0
    position = 1
    while position < len(hlo_proto):
        byte = hlo_proto[position]
        position += 1
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return hlo_proto[position : position + length]


def _marker(hlo: str, flags: list[str]) -> str:
    return json.dumps(
        {
            "simulated": True,
            "what": "stands for a compiled graph in Windtunnel's simulated NeuronCores; holds no machine code",
            "simulator": __version__,
            "hlo_sha256": hashlib.sha256(hlo.encode()).hexdigest(),
            "compile_flags": flags,
        },
        indent=1,
    )
