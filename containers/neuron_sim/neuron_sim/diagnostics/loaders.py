"""Finds which loader made a batch, on which line of the script, and how long the loop waited for it."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from neuron_sim.counters import recorder, script_lines, script_time
from neuron_sim.counters.batches import samples_of, tensors_of
from neuron_sim.diagnostics import same_data
from neuron_sim.diagnostics.batch_sizes import Loader
from neuron_sim.diagnostics.unequal_weights import Look
from neuron_sim.rehearsal.loader_facts import asked, facts, sequence_length
from neuron_sim.rehearsal.own_steps import OwnSteps
from neuron_sim.rehearsal.passes import Pass, Passes

_INNER = ("_cpu_loader", "_loader", "dataloader", "base_dataloader")
"""Attributes in which wrappers (MpDeviceLoader, accelerate's loaders) keep the loader that they wrap."""
_DEEPEST = 8
"""How many nested wrappers are followed; a script's own may wrap itself."""


class Loaders:
    """Follows torch's DataLoader and torch_xla's loaders in the script's own thread."""

    def __init__(
        self,
        tell: Callable[[Any, int, float], None],
        passes: Passes,
        failed: Callable[[str, str], None],
        keep: Callable[[dict[str, Any]], None],
        look: Look,
    ) -> None:
        """``tell`` is called for each batch that the loop takes from a plain DataLoader, and with a negative number of
        samples for one that was only looked at.

        ``failed`` is called, in the thread that reads ahead, with the line of a loader and its error, if the loop does
        not see that error. ``keep`` takes what `record` would give, in a short rehearsal. ``look`` gives the values of
        a computed tensor.
        """
        self._tell = tell
        self._failed = failed
        self._keep = keep
        self._look = look
        self.has_kept = False
        self.passes = passes
        self._own = OwnSteps(passes)
        self.all: list[Loader] = []
        """The records of all loaders, also of those that no longer exist."""
        # By identity, not by equality: a script's own loader may not be hashable.
        self._loaders: WeakIdKeyDictionary = WeakIdKeyDictionary()
        self._came_from: WeakIdKeyDictionary = WeakIdKeyDictionary()
        self.latest: Loader | None = None
        self._told = 0
        """Samples of its latest batch; 0 once the batch comes in pieces."""
        self._since = 0
        """Samples taken for training since the latest step."""

    def _record(self, loader: Any) -> Loader:
        inner = _innermost(loader)
        record: Loader | None
        try:
            record = self._loaders.get(inner)
        except Exception:  # noqa: BLE001 - a script's own class may raise anything when it is asked
            # torch_xla takes any iterable. Some (a list) cannot be a weak key; the loader that wraps it can.
            inner = loader
            record = self._loaders.get(inner)
        if record is None:
            record = self._loaders[inner] = Loader()
            self.all.append(record)
        return record

    def came(self, loader: Any, samples: int, _waited_s: float) -> None:
        """Called when torch_xla's loader has handed over a batch."""
        if self._is_in_pieces(loader):
            recorder.counting.in_pieces(self._told)
            self._told = 0
            return
        self._told = samples
        record = self._record(loader)
        record.reads_ahead = True
        self._note(record, samples)

    def _is_in_pieces(self, loader: Any) -> bool:
        """Whether the loader gives the current batch's microbatches, from a list, as in NxD Core's pipelines.

        Each of these counts when it comes, with the pass that computes with it; the whole batch then does not count.
        """
        pieces, batch = loader._cpu_loader, self.latest
        return (
            isinstance(pieces, list)
            and batch is not None
            and self._loaders.get(loader) is None
            and 0 < batch.latest == sum(map(samples_of, pieces))
        )

    @script_time.set_aside
    def _note(self, record: Loader, size: int) -> None:
        line = script_lines.calling_line()
        before = self.latest if self.latest is not None and self.latest.ragged else None
        if before is not (record if record.is_ragged(size) else None):
            recorder.counting.look()  # the graphs that have run until now did not run with this batch
        record.came(size, line)
        run = _run(record)
        run.line = line
        self._since += size if run is record.run else 0
        self.latest = record

    @script_time.set_aside
    def _is_over(self, record: Loader, owner: Any) -> bool:
        """Whether the pass ends here, before the batch that the loop asks for. ``owner``: see `Passes.before`."""
        run = _run(record)
        if self.passes.drop_look(run, owner):
            self._tell(owner, -record.latest, 0.0)
        place = self.passes.begins_in(run, owner) if run is record.run else None
        if place is not None:
            record.goes_to(place)
            run = record.run
        is_over = self.passes.before(run, owner, evaluates=not torch.is_grad_enabled())
        if is_over:
            self._keep_seen()
        return is_over

    def _end(self, run: Pass) -> None:
        self.passes.end(run)
        self._keep_seen()

    def _keep_seen(self) -> None:
        """Keep the record when a pass has ended, in case the script is stopped later, or fails on another core."""
        if self.passes.steps is not None and (seen := self.record()) is not None:
            self._keep({**seen, "ended_early": True})
            self.has_kept = True

    def around_next_item(self, next_item: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Decorate `ParallelLoader.next_item`, which returns None at the end of a pass."""

        @functools.wraps(next_item)
        def counted_next_item(loader: Any, device: Any) -> Any:
            if self._is_in_pieces(loader):
                return next_item(loader, device)
            record = self._record(loader)
            if record.facts is None and record.made_at == "?":
                record.facts = facts(loader._cpu_loader)
            if self._is_over(record, loader):
                loader.close()  # its thread would read on beside the next pass: persistent workers have one iterator
                return None
            batch = next_item(loader, device)
            run = _run(record)
            (self._end if batch is None else self.passes.came)(run)
            if batch is not None and not record.is_torchs:
                self._look_at(record, batch)
            return batch

        return counted_next_item

    @script_time.set_aside
    def _look_at(self, record: Loader, batch: Any) -> None:
        """Look at a batch on the device, of a loader that is not torch's (webdataset's, a script's own)."""
        if len(record.first) < same_data.FIRST:
            _keep_first(record, [self._look(tensor) for tensor in tensors_of(batch)])

    def unfinished(self) -> dict[str, Any]:
        """The record of a short rehearsal that is stopped before a pass has ended; a later one replaces it."""
        return {
            "kind": "loaders",
            "rehearsed_steps": self.passes.steps,
            "ended_early": False,
            "loaders": [],
        }

    def record(self) -> dict[str, Any] | None:
        """The record of the script's loaders; None if it went over none, and no pass was ended early."""
        used = [(loader, run) for loader in self.all for run in loader.runs if run.passes]
        own = self._own.record() if all(run.by_itself for _, run in used if run.trains) else None
        if own is not None:
            used = [(loader, run) for loader, run in used if not run.trains]
        if not (used or own or self.passes.ended):
            return None
        return {
            "kind": "loaders",
            "rehearsed_steps": self.passes.steps,
            "ended_early": self.passes.ended,
            "loaders": [
                {
                    "line": run.line,
                    "batches": loader.facts and loader.facts.batches,
                    "split": bool(loader.facts and loader.facts.split),
                    "samples": loader.usual,
                    "last": loader.last,
                    "sequence_length": loader.sequence_length,
                    **run.to_dict(),
                }
                for loader, run in used
            ]
            + ([own] if own else []),
        }

    def unreached_ends(self) -> Iterator[tuple[Loader, int]]:
        """Loaders with a smaller last batch that a short rehearsal did not reach, and the samples of that batch."""
        told = [
            (loader, loader.last) for loader in self.all if loader.facts and (loader.facts.batches or 0) > 1
        ]
        for loader, last in told:
            if self.passes.steps and last and last < loader.usual and last not in loader.sizes:
                yield loader, last

    @script_time.set_aside
    def step_ended(self, made: int, backward_passes: int) -> None:
        """Called when a step has ended. ``made``: its samples that came from no loader. ``backward_passes``: how many
        it had; none, for example, if a script ends another step right after its optimizer.
        """
        if self.passes.steps is None or not backward_passes:
            return
        taken, self._since = self._since, 0
        if self.latest is not None and self.latest.run.by_itself:
            made = taken or self.latest.latest  # it may train on one batch again and again
        self._own.made(made)

    def trained(self, *_: object) -> None:
        """Called when gradients are computed from the latest batch, or an optimizer has stepped with some."""
        if self.latest is not None:
            self.passes.trained(self.latest.run)

    def around_init(self, initialise: Callable[..., None]) -> Callable[..., None]:
        """Decorate `DataLoader.__init__`: note the line that calls it."""

        @functools.wraps(initialise)
        def noted_init(loader: Any, *arguments: Any, **keywords: Any) -> None:
            initialise(loader, *arguments, **keywords)
            self._record(loader).made_at = script_lines.calling_line()

        return noted_init

    def around_iter(self, make_iterator: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Decorate `DataLoader.__iter__`: note whose batches an iterator gives."""

        @functools.wraps(make_iterator)
        def noted_iter(loader: Any) -> Any:
            iterator = make_iterator(loader)
            # The record and not the loader, which may be gone: `for batch in DataLoader(...)`.
            self._came_from[iterator] = record = self._record(loader)
            record.facts = facts(loader)
            record.is_torchs = True
            if _is_waited_for():
                for run in record.runs:
                    self.passes.anew(run)
            return iterator

        return noted_iter

    def around_next(self, advance: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Decorate the iterators' `__next__`: note the batch, and how long the loop waited for it."""

        @functools.wraps(advance)
        def timed_next(iterator: Any) -> Any:
            record = self._came_from.get(iterator)
            is_waited_for = _is_waited_for()
            asked = record if is_waited_for else None
            if asked is not None and self._is_over(asked, iterator):
                raise StopIteration
            run = None if asked is None else _run(asked)
            started = time.perf_counter()
            try:
                batch = advance(iterator)
            except Exception as error:
                if run is not None and isinstance(error, StopIteration):
                    self._end(run)
                if not is_waited_for and record is not None and _ends_a_loop(error):
                    self._failed(record.made_at, _in_short(error))
                raise
            waited_s = time.perf_counter() - started
            if record is not None:
                _keep_first(record, batch)
                if run is not None:
                    self.passes.came(run)
                    samples = samples_of(batch)
                    self._tell(iterator, samples, waited_s)
                    self._told = samples
                    self._note(record, samples)
            return batch

        return timed_next


def _is_waited_for() -> bool:
    """Whether the script's loop asks and waits, and not MpDeviceLoader's own thread, which reads ahead."""
    return script_time.clock.is_own


def _ends_a_loop(error: Exception) -> bool:
    """Whether an error ends a loop early. Not after the script's end: then its loaders' workers exit, which is an error
    for a thread that still reads ahead of a loop that was left.
    """
    return not isinstance(error, StopIteration) and threading.main_thread().is_alive()


def _keep_first(record: Loader, batch: Any) -> None:
    if len(record.first) < same_data.FIRST:
        record.first.append(same_data.digest(batch))
        record.sequence_length = sequence_length(batch)


def _run(record: Loader) -> Pass:
    return record.run if torch.is_grad_enabled() else record.without_gradients


def _in_short(error: Exception) -> str:
    """An error's type and message, without the traceback that torch puts into the error of a DataLoader's worker
    process. Such a traceback ends with the type, too.
    """
    kind = f"{type(error).__name__}: "
    return kind + (str(error).strip().splitlines() or [""])[-1].removeprefix(kind)


def _innermost(loader: Any) -> Any:
    from torch.utils.data import DataLoader

    for _ in range(_DEEPEST):
        # accelerate's loader is a DataLoader by its class, but goes through another one that it keeps.
        names = _INNER[-1:] if isinstance(loader, DataLoader) else _INNER
        inner = next((inner for name in names if (inner := asked(loader, name)) is not None), None)
        if inner is None:
            break
        loader = inner
    return loader
