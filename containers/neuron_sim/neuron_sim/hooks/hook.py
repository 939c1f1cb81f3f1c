"""One line of the table of hooks (`Hook`), and how hooks are installed."""

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
    """What is changed at one entry point: a function or kernel of torch, torch_xla or another library.

    A call of the entry point goes through these fields, in this order:
    """

    entry: str
    """``module:attribute``, or ``namespace::operation`` for torch_xla's kernel of that operation.

    ``namespace::operation/AutogradXLA``: for the kernel that also differentiates.
    """
    is_device_use: bool = False
    """The process claims its cores when it first calls any entry point with this mark."""
    before: tuple[Callable[[], object], ...] = ()
    """Functions that are called first, without arguments."""
    around: tuple[Callable[[Function], Function], ...] = ()
    """Decorators of the function; the first is the outermost."""
    instead: Function | None = None
    """Called in place of torch's own function."""
    after: tuple[Callable[[], object], ...] = ()
    """Functions that are called last, without arguments, unless the call has raised."""
    told: tuple[Function, ...] = ()
    """Listeners. The entry point is a function that registers listeners, such as ``atexit.register``."""
    is_new: bool = False
    """The library has no such entry point; ``instead`` adds it."""
    is_optional: bool = False
    """Some versions of the library have no such entry point; the hook is left out there."""

    @property
    def module(self) -> str:
        """The module that has the entry point; the hook is installed when somebody imports it."""
        return self.entry.partition(":")[0]


_entries: set[str] = set()


def install(hooks: Iterable[Hook], claim: Callable[[], object]) -> None:
    """Install each hook. ``claim`` is called at the first use of the device.

    Raises:
        NeuronSimError: an entry point has two hooks.
    """
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
        # A method written in C, which pickle finds by its module and qualified name.
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
        """A wrapper that claims the cores at its first call, then puts ``function`` itself at the entry point."""

        def claiming(*arguments: Any, **keywords: Any) -> Any:
            self._claim()
            waiting, self._waiting = self._waiting, []
            for place, attribute, mine, its_own in waiting:
                # Unless somebody has wrapped the function meanwhile.
                if getattr(place, attribute) is mine:
                    setattr(place, attribute, its_own)
            return function(*arguments, **keywords)

        self._waiting.append((owner, name, claiming, function))
        return claiming


_libraries: list[torch.library.Library] = []
"""Kept here because torch removes a kernel when its library is freed."""


def _install_kernel(hook: Hook) -> None:
    """Install the hook of a kernel. A function ``around`` it also gets the dispatch keyset, as first argument."""
    name, _, key = hook.entry.partition("/")
    namespace, _, operation = name.partition("::")
    kernel = hook.instead or torch.library.get_kernel(name, key or "XLA").call_boxed
    library = torch.library.Library(namespace, "IMPL")
    _libraries.append(library)
    with warnings.catch_warnings():
        # torch warns of every replaced kernel; here the replacement is intended.
        warnings.filterwarnings("ignore", message=r"(?s).*[Oo]verrid", category=UserWarning)
        library.impl(
            operation,
            _wrapped(hook, kernel),
            key or "XLA",
            with_keyset=hook.instead is None,
            allow_override=True,
        )
