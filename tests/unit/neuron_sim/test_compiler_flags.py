"""NEURON_CC_FLAGS are read as neuronx-cc and its wrapper read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuron_sim import topology
from neuron_sim.compiler import flags
from neuron_sim.errors import CompilerFlagError


def test_no_flags_have_the_hash_of_awss_examples() -> None:
    """`MODULE_...+d41d8cd9` in the documentation is a graph compiled without flags."""
    parsed = flags.parse("")
    assert (parsed.compiler, parsed.warnings) == ((), ())
    assert flags.flags_hash(()) == "d41d8cd9"


def test_published_flags_pass_without_a_word() -> None:
    """What public training scripts set is known, in every form that argparse takes."""
    text = (
        "--model-type=transformer --auto-cast all --auto-cast-type=bf16 --distribution-strategy=llm-training -O1"
        " --enable-saturate-infinity --enable-mixed-precision-accumulation --lnc=1 --target trn1"
        ' --tensorizer-options="--enable-hoist-fsdp-collectives" --internal-hlo2tensorizer-options=x'
        " --verbose 35"
    )
    parsed = flags.parse(text)
    assert parsed.warnings == ()
    assert parsed.compiler[:3] == ("--model-type=transformer", "--auto-cast", "all")
    assert "-O1" in parsed.compiler
    assert any("--auto-cast all" in flag for flag in parsed.arithmetic)


def test_the_wrappers_own_flags_do_not_reach_the_compiler() -> None:
    """So a graph has the same key in every cache and with every log level."""
    parsed = flags.parse("--cache_dir=/cache --retry_failed_compilation --no_cache --log_level INFO -O2")
    assert (parsed.cache_dir, parsed.retry_failed, parsed.no_cache) == ("/cache", True, True)
    assert parsed.compiler == ("-O2",)


def test_an_unknown_flag_is_one_warning_that_names_the_closest() -> None:
    """A typing error is seen, and the job goes on."""
    parsed = flags.parse("--model-typ=transformer --frobnicate")
    assert len(parsed.warnings) == 2
    assert "--model-typ " in parsed.warnings[0]
    assert "Did you mean --model-type?" in parsed.warnings[0]
    assert "--frobnicate" in parsed.warnings[1]
    assert parsed.compiler == ("--model-typ=transformer", "--frobnicate")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("--auto-cast=some", "none, matmult, all"),
        ("--optlevel 4", "1, 2, 3"),
        ("-O9", "1, 2, 3"),
        ("--model-type", "needs a value"),
        ("--retry_failed_compilation=/cache", "takes no value"),
        ("--lnc 2", "NCC_EARG001"),
        ("--target=trn2", "another device"),
        ("transformer", "neither a flag"),
        ("--model-type=transformer--cache_dir=/cache", "Put a space"),
        ("--tensorizer-options='x", "Close the quotation"),
    ],
)
def test_what_the_compiler_refuses_is_an_error_that_says_what_is_valid(text: str, said: str) -> None:
    """On trn1 the first graph would fail with it."""
    with pytest.raises(CompilerFlagError, match=said):
        flags.parse(text, "ml.trn1.32xlarge")


@pytest.mark.parametrize(
    ("text", "said"),
    [("--lnc=1", "which is all that is simulated"), ("--target=trn1", "Use trn2, or leave")],
)
def test_trn2_takes_its_own_flags_only(text: str, said: str) -> None:
    """A graph for one physical core, or for trn1, would not run where the job runs."""
    with pytest.raises(CompilerFlagError, match=said):
        flags.parse(text, "ml.trn2.48xlarge")


@pytest.mark.parametrize("name", topology.instances())
def test_an_instance_takes_its_own_logical_cores_and_targets(name: str) -> None:
    """What is named is what would be chosen anyway."""
    instance = topology.instance(name)
    for target in instance.compiler_targets:
        text = f"-lnc={instance.logical_core_config} --target={target}"
        assert flags.parse(text, f"ml.{name}").compiler == tuple(text.split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("--auto-cast=none --auto-cast-type=bf16", "no effect"),
        ("--auto-cast-type=bf16", "no effect"),
        ("--enable-mixed-precision-accumulation --disable-mixed-precision-accumulation", "both"),
        ("--no_cache --cache_dir=/x", "idle"),
        ("-O1 --optlevel=3", "right-most, 3"),
    ],
)
def test_flags_that_contradict_each_other_are_a_warning(text: str, said: str) -> None:
    """The compiler takes them; the user hardly meant them."""
    (warning,) = flags.parse(text).warnings
    assert said in warning


@pytest.mark.parametrize(
    ("text", "version", "products"),
    [
        ("", (2, 9), "fp32"),
        ("", (2, 8), "bf16"),
        ("--auto-cast=none", (2, 1), "fp32"),
        ("--auto-cast matmult", (2, 9), "bf16"),
        ("--auto-cast=all --auto-cast-type=tf32", (2, 9), "tf32"),
        ("--auto-cast-type=fp16", (1, 13), "fp16"),
        ("--auto-cast=matmult --auto-cast-type fp8_e4m3", (2, 9), "fp8"),
    ],
)
def test_what_becomes_of_fp32_products(text: str, version: tuple[int, int], products: str) -> None:
    """Up to Neuron 2.26, which is up to PyTorch 2.8, the compiler casts unasked."""
    assert flags.parse(text, framework_version=version).fp32_products == products


@given(st.lists(st.sampled_from(["-O1", "--auto-cast=all", "--model-type transformer", "--cache_dir=/a"])))
def test_reading_never_loses_or_reorders_what_the_compiler_gets(words: list[str]) -> None:
    """The compiler sees its flags as the user wrote them."""
    expected = [part for word in words if not word.startswith("--cache_dir") for part in word.split()]
    assert list(flags.parse(" ".join(words)).compiler) == expected
