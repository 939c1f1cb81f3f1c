"""The texts of findings about graphs that compile: again and again, ever larger, or for long. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from neuron_sim.counters.why_new import Reason
from neuron_sim.diagnostics import for_library
from neuron_sim.diagnostics.batch_sizes import Loader
from neuron_sim.diagnostics.findings import Finding

_EACH_A_COMPILATION = "On trn1 neuronx-cc compiles each new graph, which takes minutes for a large model."

QUICKLY_COMPILED = "--xla_backend_optimization_level=0"
_LONG_S = 60.0
"""Seconds of compiling here, in all, from which on the log says what helps."""

_RECOMPILE_ADVICE = {
    "shape": (
        "Give every batch the same shape: pad to a fixed length (tokenizer padding='max_length', max_length=N), "
        "or to a few fixed lengths (buckets)."
    ),
    "dtype": "Convert inputs to one dtype before the loop.",
    "scalar": (
        "Keep the number that changes in a tensor on the device (torch.tensor(value, device=device)), "
        "so that it is an input of the graph and not part of it."
    ),
    "control_flow": (
        "Let every step run the same operations: torch.where instead of a Python branch, "
        "a fixed number of passes instead of a loop that varies."
    ),
    "donation": "Keep or free the same tensors in every step: a list that holds results makes graphs differ.",
}

_CUTS = ("slice with ", "pad with ")
"""How the detail of a `Reason` begins for a slice at another place, read or written."""
_CUTS_ADVICE = (
    "The position of a slice (i in data[i : i + n]) is part of the graph, even if it comes from a tensor. Slice on the "
    "host and send the result. Or make the rows an input of the graph: data.index_select(0, torch.arange(i, i + "
    "n).to(device)), and index_copy_ to write them."
)

_PIECES_ADVICE = (
    "The inputs from the host have the same shapes, but something that the script cuts or makes on the device has "
    "another size each time: a random crop, CutMix, erasing, torch.arange(n). Keep one size and mask the rest "
    "(torch.where), or do it on the host, in a collate function."
)

_JOINS = ("evaluation_loop of transformers/trainer.py", "_tpu_gather")
_JOINS_ADVICE = (
    "Trainer joins its evaluation results in one tensor on the device, which grows with each batch: pass "
    "eval_accumulation_steps=1 (each batch's result goes to the host) or eval_do_concat_batches=False "
    "(compute_metrics then gets lists). If the batches themselves differ in length, pad them to one length."
)


def ragged_batch(loader: Loader, last: int, count: int, seconds: float) -> Finding:
    """A smaller last batch, of ``last`` samples: another shape, another graph."""
    more = f"{count} more graph{'' if count == 1 else 's'}"
    ends = f"ends with a batch of {last} instead of {loader.usual}: another shape, so {more} "
    return _ragged_batch(loader, f"{ends}({seconds:.1f} s of compiling here)", count, seconds)


def unreached_ragged_batch(loader: Loader, last: int) -> Finding:
    """A smaller last batch that a short rehearsal did not reach; the loader's length tells of it."""
    ends = (
        f"will end with a batch of {last} instead of {loader.usual}, which this short rehearsal did not reach"
    )
    return _ragged_batch(loader, f"{ends}: another shape, so another graph", 1, 0.0)


def _ragged_batch(loader: Loader, ends: str, count: int, seconds: float) -> Finding:
    made = f"DataLoader made at {loader.made_at}" if loader.made_at != "?" else "loader"
    line = loader.made_at if loader.made_at != "?" else loader.iterated_at
    iterated = f", iterated at {loader.iterated_at}" if loader.iterated_at != "?" else ""
    return Finding(
        "ragged_batch",
        "warning",
        line,
        f"the {made}{iterated} {ends}. {_EACH_A_COMPILATION}",
        f"Pass drop_last=True at {line}, or pad the last batch to {loader.usual}.",
        count,
        seconds,
    )


def recompiles(
    reason: Reason,
    source: str,
    library: str,
    count: int,
    seconds: float,
    steps: int,
    all_steps: int,
    also: Sequence[str] = (),
) -> Finding:
    """Graphs that are still new after the loop has warmed up. ``library``: what makes them, if not the script.

    ``steps``: in how many of ``all_steps``. ``also``: other lines that make some of them.
    """
    inside = for_library.inside(library) or (f" (also at {', '.join(also)})" if also else "")
    advice = _RECOMPILE_ADVICE.get(reason.kind, "Let every step run the same graph.")
    if reason.kind == "shape" and library.startswith(_JOINS):
        advice = _JOINS_ADVICE
    elif reason.kind == "shape" and not reason.inputs:
        advice = _PIECES_ADVICE
    elif reason.detail.startswith(_CUTS):
        advice = _CUTS_ADVICE
    return Finding(
        "recompiles",
        "warning",
        source,
        f"steps keep compiling{inside}: {_graphs(count)} for the same cause in {steps} of {all_steps} steps "
        f"({seconds:.1f} s of compiling here), the latest because {reason.detail}. {_EACH_A_COMPILATION}",
        advice,
        count,
        seconds,
        f"{reason.kind} in {library}" if library else reason.kind,
    )


def growing_graphs(source: str, library: str, count: int, seconds: float) -> Finding:
    """A step that does not end, and compiles one graph after another, each larger."""
    inside = for_library.inside(library)
    return Finding(
        "growing_graphs",
        "warning",
        source,
        f"graphs keep growing{inside}: {count} graphs so far, each larger than the one before, and no step ended "
        f"between them ({seconds:.1f} s of compiling here). {_EACH_A_COMPILATION}",
        "Call torch_xla.sync() in each pass of this loop, for instance where an agent acts and fills its memory. Put "
        "what it keeps into a list, and torch.stack() that behind the loop: each place of memory[step] = ... is a "
        "graph. If the loop generates text, also pad the sequence to its full length, and write each token into it. "
        "Or run the loop on the host, with a copy of the model (copy.deepcopy(model).cpu()).",
        count,
        seconds,
        library,
    )


def slow_compile(seconds: float, xla_flags: str) -> Finding | None:
    """All graphs so far took XLA long, and for one of more than two minutes it asks for a bug report; None: they did
    not. What level 0 gains: `launcher.xla_flags`. ``xla_flags``: those of this process.
    """
    if seconds < _LONG_S:
        return None
    todo = "Nothing to change for trn1."
    if QUICKLY_COMPILED not in xla_flags.split():
        todo += (
            f" Here environment={{'XLA_FLAGS': '{QUICKLY_COMPILED}'}} compiles in half the time or less, and each "
            "step takes up to three times as long: that helps a job of a few steps."
        )
    return Finding(
        "slow_compile",
        "note",
        "?",
        f"XLA has compiled for {seconds:.0f} s here, for this machine's processor: that is no time of trn1, where "
        'neuronx-cc may take more or less. After two minutes for one graph XLA asks "Very slow compile?".',
        todo,
        seconds=seconds,
    )


def _graphs(count: int) -> str:
    return "one graph" if count == 1 else f"{count} graphs"
