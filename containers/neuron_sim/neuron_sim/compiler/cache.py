"""Looks up each graph that a job compiles in the compile cache, and adds it there.

In a job whose graphs are only extracted (NEURON_EXTRACT_GRAPHS_ONLY=1, as
`neuron_parallel_compile` sets it) a graph is added without being compiled. On trn1 such
a run executes stubs with zero outputs; here its graphs run, and its outputs are real.

Only the first core of each host sees graphs, so each line is in the log once per host;
trn1 prints it once per core.
"""

from __future__ import annotations

from contextlib import suppress

from neuron_sim import settings
from neuron_sim.compiler import cache_entry, cache_location, flags, log_lines
from neuron_sim.compiler.unsupported import Refusal, refusals
from neuron_sim.errors import CompilationError, NeuronSimError


class CompileCache:
    """The cache as one process uses it. Files are touched only by `lookup`."""

    def __init__(self) -> None:
        """Nothing is read yet: scripts set the variables themselves, at any time before their first graph."""
        self._text: str | None = None
        self._flags = flags.CompilerFlags()
        self._announced: str | None = None
        self._said: set[str] = set()

    def announce(self) -> None:
        """Log what compiles, before the first compilation: a large graph takes a minute, in silence.

        Errors of flags or folder are left to `lookup`.
        """
        with suppress(NeuronSimError, OSError):
            wish = settings.compiler_wish()
            self._read_flags(wish)
            if not self._flags.no_cache:
                self._announce(cache_location.resolve(self._flags.cache_dir, wish), wish)

    def lookup(self, hlo: str, hlo_proto: bytes = b"") -> bool:
        """Whether the graph is in the cache, compiled. If not, it is now compiled, collected or marked as failed.

        Blocks while another process writes the same entry.

        Raises:
            CompilerFlagError: the compiler would refuse NEURON_CC_FLAGS.
            CompilationError: neuronx-cc is documented to refuse the graph.
            NeuronSimError: a cache that the job names cannot be used.
        """
        wish = settings.compiler_wish()
        self._read_flags(wish)
        if self._flags.no_cache:
            self._once("--no_cache in NEURON_CC_FLAGS: no compile cache is used.")
            _raise_refusals(refusals(hlo))
            log_lines.plain("Compiler status PASS")
            return False
        where = cache_location.resolve(self._flags.cache_dir, wish)
        self._announce(where, wish)
        try:
            return self._enter(where, hlo, cache_entry.module_of(hlo_proto), wish.extract_graphs_only)
        except OSError as error:
            named = self._flags.cache_dir or wish.cache_url
            message = f"The compile cache {where.url} cannot be used: {error}."
            if named:
                raise NeuronSimError(f"{message} Name a folder that can be read and written.") from error
            self._once(f"{message} Graphs are not cached.")
            return False

    def _enter(self, where: cache_location.Location, hlo: str, module: bytes, extract_only: bool) -> bool:
        found = cache_entry.entry(where.entries, hlo, self._flags.compiler)
        state = found.state
        neff = where.shown(found.neff)
        if state == "done":
            return _hit(neff)
        if extract_only:
            found.collect(hlo, module, self._flags.compiler)
            log_lines.info(
                log_lines.WRAPPER,
                f"Extracting graphs ({where.shown(found.hlo)}) for ahead-of-time parallel compilation."
                " No compilation was done.",
            )
            return False
        if state == "failed" and not self._flags.retry_failed:
            log_lines.info(
                log_lines.WRAPPER,
                f"Got a cached failed neff at {neff}. Will skip compilation, please set"
                " --retry_failed_compilation for recompilation.",
            )
            raise CompilationError((found.folder / "model.log").read_text().strip())
        found.collect(hlo, module, self._flags.compiler)
        outcome = found.compile(retry=self._flags.retry_failed)
        if outcome.cached:
            return _hit(neff)
        _raise_refusals(outcome.refusals)
        log_lines.plain("Compiler status PASS")
        return False

    def _read_flags(self, wish: settings.CompilerWish) -> None:
        if wish.flags == self._text:
            return
        self._flags = flags.asked(wish)
        self._text = wish.flags
        for text in self._flags.warnings:
            log_lines.warning(log_lines.WRAPPER, text)
        # `device.auto_cast` reports what is done about a cast that is to be simulated.
        told = settings.simulate_auto_cast()
        cast = ("--auto-cast", "--auto_cast")
        ignored = [flag for flag in self._flags.arithmetic if not (told and flag.startswith(cast))]
        if ignored:
            self._once(f"{' '.join(ignored)}: its effect on results is not simulated.")

    def _announce(self, where: cache_location.Location, wish: settings.CompilerWish) -> None:
        if self._announced == where.url:
            return
        self._announced = where.url
        cache_location.tell(where, wish)
        log_lines.info(log_lines.CACHE, f"Compile cache path: {where.url}")
        self._once(
            "neuronx-cc is simulated: a cached neff holds no machine code. XLA compiles for this machine's processors,"
            " in silence; a large graph takes a minute."
        )
        if where.note:
            log_lines.warning(log_lines.CACHE, where.note)

    def _once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            log_lines.plain(f"Windtunnel: {text}")


def _hit(neff: str) -> bool:
    log_lines.info(
        log_lines.WRAPPER, f"Using a cached neff at {neff}. Exiting with a successfully compiled graph."
    )
    return True


def _raise_refusals(why: tuple[Refusal, ...]) -> None:
    if why:
        log_lines.plain("Compiler status ERROR")
        raise CompilationError("\n".join(map(str, why)))


_cache = CompileCache()


_is_first = True


def before_step() -> None:
    """Called before mark_step: at the first one, the host's first core logs what compiles (`CompileCache.announce`)."""
    global _is_first
    if _is_first:
        _is_first = False
        if settings.identity().local_rank == 0:
            _cache.announce()


def lookup(hlo: str, hlo_proto: bytes, source: str) -> bool:
    """Whether a graph comes from the compile cache; see `CompileCache.lookup`. ``source``: the line that runs it."""
    try:
        return _cache.lookup(hlo, hlo_proto)
    except CompilationError as error:
        raise CompilationError(error.reasons, source) from None
