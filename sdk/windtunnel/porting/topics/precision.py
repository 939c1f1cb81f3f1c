"""Mixed precision: CUDA's autocast to fp16 with a GradScaler; on Trainium bf16, which needs no GradScaler."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting import clips
from windtunnel.porting.finding import Edit, Finding, Removal, replaced, unwrapped
from windtunnel.porting.nodes import argument, constant, keyword
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject
from windtunnel.porting.trainers import is_arguments

_AUTOCASTS = (
    "torch.cuda.amp.autocast",
    "torch.cuda.amp.autocast_mode.autocast",
    "torch.autocast",
    "torch.amp.autocast",
)
_OF_CUDA = ("enabled", "dtype", "cache_enabled")
_OF_ANY = ("device_type", "dtype", "enabled", "cache_enabled")
"""Arguments of autocast, in their order."""
CUDA_PRECISIONS = ("fp16", "fp16_full_eval", "tf32", "mixed_precision")
"""Arguments that ask for what only CUDA has, where their value depends on a GPU."""
_SCALERS = ("torch.cuda.amp.GradScaler", "torch.amp.GradScaler", "torch.cuda.amp.grad_scaler.GradScaler")


def mixed_precision(subject: Subject) -> Iterator[Finding]:
    """Findings on autocast for CUDA or to fp16, on a GradScaler's uses, and on arguments of Hugging Face's trainers."""
    yield from _autocasts(subject)
    yield from _scalers(subject)
    yield from _arguments(subject.script)


def _autocasts(subject: Subject) -> Iterator[Finding]:
    script = subject.script
    for call, name in script.calls:
        if name not in _AUTOCASTS:
            continue
        kind = argument(call, "device_type", 0)
        cuda = name.startswith("torch.cuda.") or subject.is_cuda_device(kind)
        half = any(script.dotted(node) in ("torch.float16", "torch.half") for node in ast.walk(call))
        if not cuda and not (half and constant(kind) != "cpu"):
            continue
        torch = subject.names.module("torch")
        names = _OF_CUDA if name.startswith("torch.cuda.") else _OF_ANY
        given_by_name = [
            *zip(names, call.args, strict=False),
            *((one.arg, one.value) for one in call.keywords),
        ]
        kept = [(one, value) for one, value in given_by_name if one in ("enabled", "cache_enabled")]
        given_on = f'{torch}.autocast("xla", dtype={torch}.bfloat16'
        place, text, edits = script.start(call), given_on, []
        for one, value in kept:  # each left in its place, as it may have edits of its own
            edits.append(Edit(place, script.start(value), f"{text}, {one}="))
            place, text = script.end(value), ""
        edits.append(Edit(place, script.end(call), f"{text})"))
        told = "".join(f", {one}={script.segment(value)}" for one, value in kept)
        yield Finding(
            call.lineno,
            f"{script.segment(call)} is for CUDA. On Trainium use bf16, which has fp32's range: {given_on}{told}).",
            tuple(edits),
        )


def _scalers(subject: Subject) -> Iterator[Finding]:
    script = subject.script
    for call, name in script.calls:
        if name not in _SCALERS or constant(argument(call, "enabled")) is False:
            continue
        made = script.parents[call]
        torch = subject.names.module("torch")
        target = made.targets[0] if isinstance(made, ast.Assign) and len(made.targets) == 1 else None
        edits: list[Edit | Removal] = []
        if target is not None:
            uses, others = _uses(subject, ast.unparse(target))
            off = replaced(script, call, f'{torch}.amp.GradScaler("cpu", enabled=False)')
            edits = [*uses, off if others else Removal(made)]  # type: ignore[arg-type]
        yield Finding(
            call.lineno,
            "GradScaler scales losses for fp16 on CUDA; bf16 needs no scaling. Leave it out: call loss.backward(), and "
            "the optimizer's own step.",
            tuple(edits),
        )


def _arguments(script: Script) -> Iterator[Finding]:
    """fp16 and TF32 in arguments of transformers, trl and accelerate; what depends on the device is left alone."""
    bf16 = "scales losses, as fp16 needs; bf16 has fp32's range and needs no scaling"
    for call, name in script.calls:
        for_trainer = is_arguments(name)
        for option, value, instead, text in (
            (for_trainer and "fp16", True, "bf16=True", f"fp16=True {bf16}. Write bf16=True."),
            (for_trainer and "tf32", True, "tf32=None", "tf32=True fails without a GPU: leave it out."),
            (
                name == "accelerate.Accelerator" and "mixed_precision",
                "fp16",
                'mixed_precision="bf16"',
                f'mixed_precision="fp16" {bf16}. Write "bf16".',
            ),
        ):
            given = keyword(call, option) if option else None
            if given is None:
                continue
            asks = isinstance(given.value, ast.Call) and script.dotted(given.value.func)
            if option == "fp16" and isinstance(given.value, ast.Attribute) and not keyword(call, "bf16"):
                asked = script.segment(given.value)
                text = f"fp16={asked}, if true, {bf16}. Write bf16={asked}."
                yield Finding(given.value.lineno, text, sure=False)
                continue
            if option == "fp16" and asks == "torch.cuda.is_available":
                text = f"fp16={asks}() gives fp32 on trn1, which has bf16. Write bf16=True."
            elif constant(given.value) != value:
                continue
            doubled = option == "fp16" and keyword(call, "bf16")
            edits = () if doubled else (replaced(script, given, instead),)
            yield Finding(given.value.lineno, text, edits)


def _uses(subject: Subject, scaler: str) -> tuple[list[Edit | Removal], bool]:
    """The edits of a scaler's uses, and whether there are other uses, which need the scaler."""
    script = subject.script
    edits: list[Edit | Removal] = []
    mentions = [node for node in script.walk(ast.Name, ast.Attribute) if ast.unparse(node) == scaler]
    settled = 0
    for call, _ in script.calls:
        if not isinstance(call.func, ast.Attribute) or ast.unparse(call.func.value) != scaler:
            continue
        settled += 1
        statement = script.statement(call)
        (given, *_) = [*call.args, None]
        if call.func.attr == "scale" and given is not None:
            edits += unwrapped(script, call, given)
        elif call.func.attr in ("unscale_", "update") and statement:
            edits.append(Removal(statement))
        elif call.func.attr == "step" and given is not None and len(call.args) == 1:
            edits.append(replaced(script, call, _step(subject, call, script.segment(given))))
        else:
            settled -= 1
    return edits, len(mentions) > settled + 1


def _step(subject: Subject, call: ast.Call, optimizer: str) -> str:
    alone = subject.exchanges or not subject.several or call in clips.clipped(subject)
    return f"{optimizer}.step()" if alone else f"{subject.names.module('xm')}.optimizer_step({optimizer})"
