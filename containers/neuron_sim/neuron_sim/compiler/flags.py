"""NEURON_CC_FLAGS: what neuronx-cc and the wrapper around it understand, and what they refuse.

Sources: AWS Neuron documentation, "Neuron Compiler CLI Reference Guide (neuronx-cc)"
(compiler/neuronx-cc/api-reference-guide), "Neuron Persistent Cache" for the wrapper's own
options (about-neuron/arch/neuron-features/neuron-caching), error code NCC_EARG001 for the
logical cores that a device has, and AWS's public training samples for the options that the guide
does not list (`_SAMPLES`).

The flags are checked and they are part of the cache's key. What they do to speed is not simulated; what
--auto-cast does to products is if asked for (`device.auto_cast`), and the counters tell it to the price model.
"""

from __future__ import annotations

import difflib
import hashlib
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from neuron_sim import settings, topology
from neuron_sim.errors import CompilerFlagError

VARIABLE = "NEURON_CC_FLAGS"
CASTS_UNASKED = (2, 8)
"""The newest PyTorch with which the compiler's own ``--auto-cast`` is ``matmult``: AWS's training images have it with
Neuron 2.26. PyTorch 2.9 came with 2.27, where it is ``none`` (AWS Neuron documentation, "Component Release Notes for
Neuron Graph Compiler")."""


@dataclass(frozen=True)
class Option:
    """One flag. ``values``: those that it takes; empty: any. ``switch``: it takes none."""

    name: str
    values: tuple[str, ...] = ()
    switch: bool = False
    arithmetic: bool = False
    """Whether it changes results on the device."""


_GUIDE = (
    Option("--framework", ("XLA",)),
    Option("--target", topology.compiler_targets()),
    Option("--model-type", ("generic", "transformer", "unet-inference", "cnn-training")),
    Option("--auto-cast", ("none", "matmult", "all"), arithmetic=True),
    Option("--auto-cast-type", ("bf16", "fp16", "tf32", "fp8_e4m3"), arithmetic=True),
    Option("--native-int64", ("default", "enabled", "disabled"), arithmetic=True),
    Option("--implicit-integer-downcast", arithmetic=True),
    Option("--distribution-strategy", ("generic", "llm-training", "NEMO", "nemo", "FSDP", "fsdp")),
    Option("--logical-nc-config", ("1", "2")),
    Option("--optlevel", ("1", "2", "3")),
    Option("--enable-mixed-precision-accumulation", switch=True, arithmetic=True),
    Option("--disable-mixed-precision-accumulation", switch=True, arithmetic=True),
    Option("--enable-saturate-infinity", switch=True, arithmetic=True),
    Option("--enable-fast-context-switch", switch=True),
    Option("--enable-fast-loading-neuron-binaries", switch=True),
    Option("--logfile"),
    Option("--output"),
    Option("--verbose"),
)
_SAMPLES = (
    Option("--enable-experimental-O1", switch=True),
    Option("--enable-experimental-spmd", switch=True),
    Option("--execute-repetition"),
    Option("--hbm-scratchpad-page-size"),
    Option("--hlo2tensorizer-options"),
    Option("--layer-unroll-factor"),
    Option("--policy"),
    Option("--tensorizer-options"),
)
_WRAPPER = (
    Option("--cache_dir"),
    Option("--no_cache", switch=True),
    Option("--retry_failed_compilation", switch=True),
    Option("--log_level", ("DEBUG", "INFO", "WARNING", "ERROR")),
    Option("--dump"),
)
_SHORT = {
    "-O": "--optlevel",
    "-lnc": "--logical-nc-config",
    "--lnc": "--logical-nc-config",
    "-v": "--verbose",
}
_UNDOCUMENTED = ("--internal-", "--enable-internal-", "--disable-internal-", "--experimental-")
"""Prefixes of options that neuronx-cc takes and AWS does not document: they pass without a warning."""


def _key(name: str) -> str:
    return name.replace("_", "-")


_OPTIONS = {_key(option.name): option for option in (*_GUIDE, *_SAMPLES, *_WRAPPER)}
_WRAPPERS = {_key(option.name) for option in _WRAPPER}


@dataclass(frozen=True)
class CompilerFlags:
    """NEURON_CC_FLAGS, read and checked.

    ``compiler``: the words that reach neuronx-cc, in order. ``warnings``: about words that it would ignore or misread.
    """

    compiler: tuple[str, ...] = ()
    cache_dir: str | None = None
    no_cache: bool = False
    retry_failed: bool = False
    warnings: tuple[str, ...] = ()
    arithmetic: tuple[str, ...] = ()
    """Flags that change results on the device; here only `device.auto_cast` does so, if asked to."""
    auto_cast: str = "none"
    auto_cast_type: str = "bf16"

    @property
    def fp32_products(self) -> str:
        """The dtype in which the device multiplies what the script wrote in fp32."""
        return "fp32" if self.auto_cast == "none" else self.auto_cast_type.partition("_")[0]


def flags_hash(compiler: tuple[str, ...]) -> str:
    """The part of a cache key that stands for the flags: eight hexadecimal digits; ``d41d8cd9``, as in AWS's own
    examples, when there are none.
    """
    return hashlib.md5(" ".join(compiler).encode(), usedforsecurity=False).hexdigest()[:8]


def asked(wish: settings.CompilerWish) -> CompilerFlags:
    """What a process asks of the compiler. Raises as `parse`."""
    return parse(wish.flags, wish.instance_type, wish.framework_version)


def parse(
    text: str, instance_type: str = "ml.trn1.2xlarge", framework_version: tuple[int, int] = (2, 9)
) -> CompilerFlags:
    """Read NEURON_CC_FLAGS. An unknown flag is a warning that names the closest known one.

    Raises:
        CompilerFlagError: a value that the compiler refuses, a value that is missing, or flags that
            cannot hold on the instance.
    """
    given: dict[str, str] = {}
    compiler: list[str] = []
    warnings: list[str] = []
    arithmetic: list[str] = []
    for name, value, words in _pairs(text):
        option = _OPTIONS.get(_key(name))
        if option is None:
            if not name.startswith(_UNDOCUMENTED):
                warnings.append(_unknown(name))
            compiler += words
            continue
        _check(option, value)
        key = _key(option.name)
        if key not in _WRAPPERS:
            compiler += words
        if key in given and given[key] != value:
            warnings.append(
                f"{option.name} is given twice, {given[key]} and {value}: neuronx-cc takes the right-most, {value}."
            )
        given[key] = value
        if option.arithmetic:
            arithmetic.append(" ".join(words))
    _check_together(given, instance_type)
    cast = "matmult" if framework_version <= CASTS_UNASKED else "none"
    warnings += _contradictions(given, cast)
    return CompilerFlags(
        compiler=tuple(compiler),
        cache_dir=given.get("--cache-dir"),
        no_cache="--no-cache" in given,
        retry_failed="--retry-failed-compilation" in given,
        warnings=tuple(dict.fromkeys(warnings)),
        arithmetic=tuple(arithmetic),
        auto_cast=given.get("--auto-cast", cast),
        auto_cast_type=given.get("--auto-cast-type", "bf16"),
    )


def _pairs(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """For each flag: (name in its long form, value or "", the words as they stood)."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise CompilerFlagError(
            f"{VARIABLE} cannot be read ({error}): {text!r}. Close the quotation."
        ) from error
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if not word.startswith("-"):
            raise CompilerFlagError(
                f"{VARIABLE}: {word!r} is neither a flag nor the value of one. Flags begin with --, and a value"
                " stands behind its flag: --flag=value."
            )
        name, equals, value = word.partition("=")
        used = [word]
        if name[:2] == "-O" and name[2:3].isdigit():
            name, value = "--optlevel", name[2:]
        name = _SHORT.get(name, name)
        option = _OPTIONS.get(_key(name))
        takes_value = option is not None and not option.switch
        unknown_with_value = option is None and not equals
        following = words[position] if position < len(words) else "-"
        if not equals and not value and (takes_value or unknown_with_value) and not following.startswith("-"):
            value = following
            used.append(following)
            position += 1
        yield name, value, used


def _check(option: Option, value: str) -> None:
    if option.switch:
        if value and value.lower() not in ("true", "false"):
            raise CompilerFlagError(
                f"{VARIABLE}: {option.name} takes no value, and {value!r} was given. Remove it."
            )
        return
    if not value:
        choices = f" one of {', '.join(option.values)}" if option.values else ""
        raise CompilerFlagError(f"{VARIABLE}: {option.name} needs a value:{choices or ' none was given'}.")
    if "--" in value and _OPTIONS.get(_key("--" + value.split("--", 1)[1].partition("=")[0])):
        raise CompilerFlagError(
            f"{VARIABLE}: {option.name}={value} is two flags written together. Put a space between them:"
            f" {VARIABLE} + ' --flag'."
        )
    if option.values and value not in option.values:
        raise CompilerFlagError(
            f"{VARIABLE}: {option.name} does not take {value!r}. neuronx-cc takes {', '.join(option.values)}."
        )


def _check_together(given: dict[str, str], instance_type: str) -> None:
    """Raise CompilerFlagError for a value that a flag allows, but the instance does not."""
    instance = topology.instance(instance_type)
    config, target = given.get("--logical-nc-config"), given.get("--target")
    if config and int(config) not in instance.logical_core_configs:
        raise CompilerFlagError(
            f"{VARIABLE}: [NCC_EARG001] --logical-nc-config (--lnc) {config} is not supported on {instance_type}."
            f" Use {instance.logical_core_config}, or leave the flag out."
        )
    if config and int(config) != instance.logical_core_config:
        raise CompilerFlagError(
            f"{VARIABLE}: --logical-nc-config (--lnc) {config} does not run where a logical core is"
            f" {instance.logical_core_config} physical ones, which is all that is simulated of {instance_type}."
            f" Use {instance.logical_core_config}, or leave the flag out."
        )
    if target and target not in instance.compiler_targets:
        raise CompilerFlagError(
            f"{VARIABLE}: --target={target} compiles for another device than {instance_type} has. Use"
            f" {instance.compiler_targets[0]}, or leave the flag out."
        )


def _contradictions(given: dict[str, str], cast: str) -> Iterator[str]:
    if given.get("--auto-cast", cast) == "none" and "--auto-cast-type" in given:
        stated = "--auto-cast=none" if "--auto-cast" in given else "no --auto-cast (its default is none)"
        yield f"--auto-cast-type={given['--auto-cast-type']} has no effect with {stated}."
    both = {"--enable-mixed-precision-accumulation", "--disable-mixed-precision-accumulation"}
    if both <= given.keys():
        yield "mixed-precision accumulation is both enabled and disabled: leave one of the two out."
    if "--no-cache" in given and "--cache-dir" in given:
        yield f"--no_cache makes --cache_dir={given['--cache-dir']} idle."


def _unknown(name: str) -> str:
    names = [*(option.name for option in _OPTIONS.values()), *_SHORT]
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]}?" if close else ""
    return f"{VARIABLE}: {name} is no flag that neuronx-cc or its cache documents.{hint}"
