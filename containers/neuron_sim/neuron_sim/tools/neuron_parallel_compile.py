"""`neuron_parallel_compile`: collect a script's graphs, compile them into the cache, keep the cache.

Commands, lines and variables: AWS Neuron documentation, "PyTorch NeuronX
neuron_parallel_compile CLI". SageMaker's toolkit puts this command before torchrun when
RUN_NEURON_PARALLEL_COMPILE=1.

Two things are not as on trn1. The trial run's graphs are executed, so its outputs are
real and not zero; and compiling is simulated, so it takes no time.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neuron_sim import settings
from neuron_sim.compiler import analyze_report, cache_entry, cache_location, flags, log_lines
from neuron_sim.errors import NeuronSimError

LOGGER = logging.getLogger(__name__)
"""For optimum-neuron, which replaces this command by its own and imports `main` and this name."""
COMMANDS = ("collect", "compile", "clean", "clear-locks", "analyze")


def main(argv: list[str] | None = None) -> int:
    """Run a command, and return its exit code; 2: the arguments or settings are wrong."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    command: str | None = arguments.command
    script: list[str] = arguments.script
    if script[:1] == ["--"]:
        script = script[1:]
    if not script and command in (None, "collect", "analyze"):
        parser.error(f"{command or 'collecting and compiling'} needs the command that runs the script")
    if script and shutil.which(script[0]) is None:
        parser.error(f"{script[0]}: no such command")
    try:
        if command == "analyze":
            return _analyze(script, arguments.analyze_output, arguments.analyze_verbosity)
        where, parsed = _cache()
        if command == "clean":
            return _clean(where)
        if command == "clear-locks":
            return _clear_locks(where)
        caches, code = [where], 0
        if command != "compile":
            code, used = _trial(script)
            caches += [other for other in used if other.folder != where.folder]
        if command != "collect" and (code == 0 or settings.compiler_wish().ignore_script_error):
            return _compile(caches, parsed)
    except (NeuronSimError, OSError) as error:
        print(f"neuron_parallel_compile: {error}", file=sys.stderr)
        return 2
    if code and command is None:
        log_lines.info(
            log_lines.PARALLEL,
            f"The trial run ended with exit code {code}: nothing is compiled. Set"
            " NEURON_IGNORE_TRAINING_SCRIPT_ERROR_AND_COMPILE=1 to compile what it collected.",
        )
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="neuron_parallel_compile",
        description="Collect the graphs of a short trial run and compile them into the Neuron compile cache.",
    )
    parser.add_argument("--command", choices=COMMANDS, help="default: collect, then compile")
    parser.add_argument("--analyze-output", type=Path, default=Path("model_analysis_result"))
    parser.add_argument("--analyze-verbosity", type=int, choices=(1, 2), default=2)
    parser.add_argument("--compile_workdir", help="accepted; nothing is written there")
    # Not in the documentation; AWS's samples give it (stable_diffusion, hf_image_classification).
    parser.add_argument(
        "--num_parallel", type=int, help="accepted; compiling is simulated, one graph at a time"
    )
    parser.add_argument("script", nargs=argparse.REMAINDER, help="the command that runs the script")
    return parser


def _cache() -> tuple[cache_location.Location, flags.CompilerFlags]:
    wish = settings.compiler_wish()
    parsed = flags.asked(wish)
    where = cache_location.resolve(parsed.cache_dir, wish)
    log_lines.info(log_lines.CACHE, f"Compile cache path: {where.url}")
    if where.note:
        log_lines.warning(log_lines.CACHE, where.note)
    return where, parsed


def _trial(script: list[str]) -> tuple[int, list[cache_location.Location]]:
    """Do the trial run. Returns its exit code, and the caches that it has used: a script may name some itself."""
    with tempfile.TemporaryDirectory(prefix="neuron-trial-") as folder:
        told = Path(folder) / "caches"
        code = _collect(script, **{settings.TRIAL_CACHES: str(told)})
        return code, list(cache_location.told(told))


def _collect(script: list[str], **environment: str) -> int:
    """Run the script for its graphs; the exit code. SIGTERM and SIGINT are passed on, and its end is waited for."""
    log_lines.plain(
        "Windtunnel: trial run of neuron_parallel_compile: outputs are real here, and zero on trn1; the model"
        " that it leaves is of no use there."
    )
    child = subprocess.Popen(script, env={**os.environ, "NEURON_EXTRACT_GRAPHS_ONLY": "1", **environment})
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: child.send_signal(received))
    code = child.wait()
    return 128 - code if code < 0 else code


def compile_collected(cache: str) -> int:
    """Compile all that is collected in the cache at this address. Returns 1 if a graph fails, else 0."""
    wish = settings.compiler_wish()
    return _compile([cache_location.resolve(cache, wish)], flags.asked(wish))


def _compile(caches: Sequence[cache_location.Location], parsed: flags.CompilerFlags) -> int:
    """Compile all that is collected in these caches. Returns 1 if a graph fails, else 0."""
    tried = ("collected", "failed") if parsed.retry_failed else ("collected",)
    shown = {
        item: where.shown(item.hlo)
        for where in caches
        for item in cache_entry.entries(where.entries)
        if item.state in tried
    }
    found = list(shown)
    _progress(found, set(), Counter())
    if found:
        log_lines.info(log_lines.PARALLEL, f"master grab hlos to compile: {list(shown.values())}")
    report: dict[str, dict[str, Any]] = {}
    count: Counter[str] = Counter()
    done: set[Path] = set()
    for item in found:
        status, retry = _compile_one(item, settings.compiler_wish().max_retries)
        report[shown[item]] = {"status": status, "retry": retry}
        count["true" if status else "false"] += 1
        done.add(item.folder)
        _progress(found, done, count)
    summary = {"compilation_summary": dict(count), "compilation_report": report}
    log_lines.info(log_lines.PARALLEL, json.dumps(summary, indent=4))
    log_lines.info(log_lines.PARALLEL, f"Total graphs: {len(found)}")
    log_lines.info(log_lines.PARALLEL, f"Total successful compilations: {count['true']}")
    log_lines.info(log_lines.PARALLEL, f"Total failed compilations: {count['false']}")
    return 1 if count["false"] else 0


def _compile_one(item: cache_entry.Entry, retries: int) -> tuple[bool, int]:
    """Compile one graph. Returns (success, how often it was tried again)."""
    for retry in range(retries + 1):
        why = item.compile(retry=True).refusals
        if not why:
            log_lines.plain("Compiler status PASS")
            return True, retry
        log_lines.plain("Compiler status ERROR")
        for reason in why:
            log_lines.info(log_lines.PARALLEL, f"{item.folder.name}: {reason}")
    return False, retries


def _progress(found: list[cache_entry.Entry], done: set[Path], count: Counter[str]) -> None:
    locked = sum(item.locked for item in found if item.folder not in done)
    log_lines.info(
        log_lines.CACHE,
        f"Current remaining items are {len(found) - len(done)}, locked are {locked}, failed are {count['false']},"
        f" done are {count['true']}, total is {len(found)}",
    )


def _clean(where: cache_location.Location) -> int:
    """Remove all entries of all compilers; nothing else that may be in the folder."""
    for compiler in where.folder.glob("neuronxcc-*"):
        shutil.rmtree(compiler)
    log_lines.info(log_lines.CACHE, f"The compile cache at {where.url} is clean.")
    return 0


def _clear_locks(where: cache_location.Location) -> int:
    """Remove lock files whose holder is gone; a lock that a process holds stays."""
    removed = held = 0
    for path in where.folder.glob("neuronxcc-*/MODULE_*/*.lock"):
        if cache_entry.Entry(path.parent).locked:
            held += 1
        else:
            path.unlink(missing_ok=True)
            removed += 1
    log_lines.info(log_lines.CACHE, f"Locks removed: {removed}; held by a running process and left: {held}.")
    return 0


def _analyze(script: list[str], output: Path, verbosity: int) -> int:
    """Run the script with a cache of its own, and report on the graphs that it has put there."""
    with tempfile.TemporaryDirectory(prefix="model_analysis_graphs-") as folder:
        # XLA_HLO_DEBUG brings the script's lines into the graphs. The last --cache_dir is the one that counts.
        own = f"{settings.compiler_wish().flags} --cache_dir={folder}".strip()
        code = _collect(script, NEURON_CC_FLAGS=own, XLA_HLO_DEBUG="1", XLA_IR_DEBUG="1")
        if code and not settings.compiler_wish().ignore_script_error:
            log_lines.info(log_lines.ANALYZE, f"The script ended with exit code {code}: nothing is analyzed.")
            return code
        graphs = [item.text for item in cache_entry.entries(Path(folder) / cache_location.COMPILER)]
    path = output.absolute() / "result.json"
    if path.exists():
        log_lines.info(log_lines.ANALYZE, f"Removing existing report {path}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(analyze_report.analyze(graphs, verbosity), indent=4) + "\n")
    log_lines.info(log_lines.ANALYZE, f"Model analysis completed. Report - {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
