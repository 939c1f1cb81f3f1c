"""A line of the table of hooks, and how it is put in its place."""

from __future__ import annotations

import functools
import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from neuron_sim.errors import NeuronSimError
from neuron_sim.hooks.after_import import after_import

Function = Callable[..., Any]


@dataclass(frozen=True)
class Hook:
    """What happens at one entry point; all that is not said here stays as torch has it.

    A call of the entry point goes through these, in this order:
    """

    entry: str
    """``module:attribute``, or ``namespace::operation`` for torch_xla's kernel of it.

    ``namespace::operation/AutogradXLA``: for the kernel that also differentiates.
    """
    is_device_use: bool = False
    """At the first call of such an entry point, of whichever, the process claims its cores."""
    before: tuple[Callable[[], object], ...] = ()
    """Called without arguments."""
    around: tuple[Callable[[Function], Function], ...] = ()
    """Each makes of a function the one that is called instead; the first is the outermost."""
    instead: Function | None = None
    """Called in place of torch's own."""
    after: tuple[Callable[[], object], ...] = ()
    """Called without arguments, unless the call has raised."""
    told: tuple[Function, ...] = ()
    """The entry point is torch's (or Python's) own way to be told of something: it is given each of these."""
    is_new: bool = False
    """The entry point is not there without ``instead``."""
    is_optional: bool = False
    """Of a library whose other versions may have no such entry point: those stay as they are."""

    @property
    def module(self) -> str:
        """Where the entry point is; the hook is put there when somebody imports it."""
        return self.entry.partition(":")[0]


_entries: set[str] = set()


def install(hooks: Iterable[Hook], claim: Callable[[], object]) -> None:
    """Put each hook in its place; an entry point has one at most. ``claim``: at the first use of the device."""
    uses = _DeviceUses(claim)
    for hook in hooks:
        if hook.entry in _entries:
            raise NeuronSimError(f"{hook.entry} has two lines in the table of hooks: make them one")
        _entries.add(hook.entry)
        if "::" in hook.entry:
            _install_kernel(hook)
        elif hook.told:
            register = pkgutil.resolve_name(hook.entry)
            for listener in hook.told:
                register(listener)
        elif hook.module not in sys.modules:
            after_import(hook.module, functools.partial(_install_function, hook, uses))
        else:
            _install_function(hook, uses)


def _install_function(hook: Hook, uses: _DeviceUses) -> None:
    parents, _, name = hook.entry.partition(":")[2].rpartition(".")
    try:
        owner = pkgutil.resolve_name(f"{hook.module}:{parents}" if parents else hook.module)
        own = None if hook.is_new else getattr(owner, name)
    except AttributeError:
        if hook.is_optional:
            return
        raise
    function = _wrapped(hook, hook.instead or own)
    if own is not None and not hasattr(own, "__module__"):
        # A method of C's, which is pickled by the place where it stands.
        function.__module__, function.__qualname__ = hook.module, hook.entry.partition(":")[2]
    if hook.is_device_use:
        function = uses.until_claimed(owner, name, function)
    setattr(owner, name, function)


def _wrapped(hook: Hook, function: Any) -> Function:
    for around in reversed(hook.around):
        function = around(function)
    if hook.before or hook.after:
        function = _listened_to(function, hook.before, hook.after)
    return function  # type: ignore[no-any-return]


def _listened_to(
    function: Function, before: tuple[Callable[[], object], ...], after: tuple[Callable[[], object], ...]
) -> Function:
    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        for listener in before:
            listener()
        result = function(*arguments, **keywords)
        for listener in after:
            listener()
        return result

    return call


class _DeviceUses:
    """The entry points that claim the process's cores, until one of them has been called."""

    def __init__(self, claim: Callable[[], object]) -> None:
        self._claim = claim
        self._waiting: list[tuple[Any, str, Function, Function]] = []

    def until_claimed(self, owner: Any, name: str, function: Function) -> Function:
        """What stands at an entry point until then; from then on there is only ``function``."""

        def claiming(*arguments: Any, **keywords: Any) -> Any:
            self._claim()
            waiting, self._waiting = self._waiting, []
            for place, attribute, mine, its_own in waiting:
                # Unless somebody has put something around it meanwhile.
                if getattr(place, attribute) is mine:
                    setattr(place, attribute, its_own)
            return function(*arguments, **keywords)

        self._waiting.append((owner, name, claiming, function))
        return claiming


_libraries: list[torch.library.Library] = []
"""Kernels are there as long as their library."""


def _install_kernel(hook: Hook) -> None:
    """What is put ``around`` a kernel gets its keyset first; a kernel ``instead`` takes the arguments alone."""
    name, _, key = hook.entry.partition("/")
    namespace, _, operation = name.partition("::")
    kernel = hook.instead or torch.library.get_kernel(name, key or "XLA").call_boxed
    library = torch.library.Library(namespace, "IMPL")
    _libraries.append(library)
    with warnings.catch_warnings():
        # torch warns of every replaced kernel; replacing it is what we are here for.
        warnings.filterwarnings("ignore", message=r"(?s).*[Oo]verrid", category=UserWarning)
        library.impl(
            operation,
            _wrapped(hook, kernel),
            key or "XLA",
            with_keyset=hook.instead is None,
            allow_override=True,
        )
