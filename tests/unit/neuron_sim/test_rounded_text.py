"""What simulates stochastic rounding is none of the graph that trn1 runs."""

from __future__ import annotations

import pytest

from neuron_sim.counters import hlo

_ROUNDING = """\
%stochastic_round.9 (p0.1: f32[64], p1.2: s32[2]) -> bf16[64] {
  %p0.1 = f32[64]{0} parameter(0)
  %p1.2 = s32[2]{0} parameter(1)
  %bits.3 = u32[64]{0} bitcast-convert(%p0.1)
  ROOT %cast.4 = bf16[64]{0} convert(%p0.1)
}

"""
_HEAD = """\
  %x.10 = bf16[64]{0} parameter(0)
  %y.11 = bf16[64]{0} parameter(1)
  %wide.12 = f32[64]{0} parameter(2)
  %key.13 = s32[2]{0} parameter(3)
  %one.14 = s32[] constant(1)
  %ones.15 = s32[2]{0} broadcast(%one.14), dimensions={}
  %key.16 = s32[2]{0} add(%key.13, %ones.15)
"""
_LAYOUT = "entry_computation_layout={(bf16[64]{0}, bf16[64]{0}, f32[64]{0}, s32[2]{0})->(bf16[64]{0})}"


def _text(lines: list[str], rounding: str = _ROUNDING) -> str:
    body = "".join(f"  {line}\n" for line in lines)
    return f"HloModule M.1, {_LAYOUT}\n\n{rounding}ENTRY %M.2 () -> bf16[64] {{\n{_HEAD}{body}}}\n"


_CALL = "call({}, %key.16), to_apply=%stochastic_round.9"
_RAISED = [
    "%a.20 = f32[64]{0} convert(%x.10)",
    "%b.21 = f32[64]{0} convert(%y.11)",
    "%rate.22 = f32[] constant(0.5)",
    "%rates.23 = f32[64]{0} broadcast(%rate.22), dimensions={}",
]


@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_rounded_arithmetic_of_bf16_is_arithmetic_in_bf16(kind: str) -> None:
    """A graph of BERT's AdamW was counted twenty times, and its compilation priced at half an hour. So for fp16."""
    lines = [
        *_RAISED,
        "%part.24 = f32[64]{0} multiply(%b.21, %rates.23)",
        "%sum.25 = f32[64]{0} add(%a.20, %part.24)",
        f"%call.26 = bf16[64]{{0}} {_CALL.format('%sum.25')}",
        "ROOT %twice.27 = bf16[64]{0} multiply(%call.26, %call.26)",
    ]
    read = hlo.as_rounded(_text(lines).replace("bf16", kind))
    assert "stochastic" not in read and "s32[2]{0} add" not in read and " convert(" not in read
    assert f"%part.24 = {kind}[64]{{0}} multiply(%y.11, %rates.23)" in read
    assert f"%sum.25 = {kind}[64]{{0}} add(%x.10, %part.24)" in read
    assert f"ROOT %twice.27 = {kind}[64]{{0}} multiply(%sum.25, %sum.25)" in read
    plain = hlo.cost(read).work.record()["elementwise"]
    assert plain["activations"]["vector_elements"] + plain["state"]["vector_elements"] == 3 * 64


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        (["%sum.25 = f32[64]{0} add(%wide.12, %wide.12)"], "%sum.25"),
        (
            ["%a.20 = f32[64]{0} convert(%x.10)", "%sum.25 = f32[64]{0} add(%wide.12, %a.20)"],
            "%sum.25",
        ),
        (
            [
                "%a.20 = f32[64]{0} convert(%x.10)",
                "%sum.25 = f32[64]{0} add(%a.20, %a.20)",
                "%kept.28 = f32[64]{0} negate(%sum.25)",
            ],
            "%sum.25",
        ),
        ([], "%wide.12"),
    ],
)
def test_a_cast_of_what_was_fp32_stays_a_conversion(lines: list[str], value: str) -> None:
    """Also of what something else reads in fp32."""
    read = hlo.as_rounded(_text([*lines, f"ROOT %call.26 = bf16[64]{{0}} {_CALL.format(value)}"]))
    assert f"ROOT %call.26 = bf16[64]{{0}} convert({value})" in read
    assert all(line in read for line in lines)


def test_thousands_of_roundings_one_behind_the_other() -> None:
    """As BERT-large has them: the counter's last number is a result of the graph, too."""
    lines, count = [], 3_000
    for number in range(count):
        value, key = (f"%call.{number - 1}", f"%next.{number - 1}") if number else ("%x.10", "%key.16")
        lines += [
            f"%wide.{number}00 = f32[64]{{0}} convert({value})",
            f"%sum.{number} = f32[64]{{0}} negate(%wide.{number}00)",
            f"%next.{number} = s32[2]{{0}} add({key}, %ones.15)",
            f"%call.{number} = bf16[64]{{0}} call(%sum.{number}, %next.{number}), to_apply=%stochastic_round.9",
        ]
    lines.append(f"ROOT %all.1 = (bf16[64]{{0}}, s32[2]{{0}}) tuple(%call.{count - 1}, %next.{count - 1})")
    read = hlo.as_rounded(_text(lines))
    assert read.count("negate(") == read.count("= bf16[64]{0} negate(") == count
    assert read.count(" = ") == _text([]).count(" = ") - _ROUNDING.count(" = ") + count + 1
    assert f"tuple(%sum.{count - 1}, %key.16)" in read


def test_other_graphs_stay_as_they_are() -> None:
    """Without the variable there is no such call."""
    text = _text(["ROOT %sum.25 = bf16[64]{0} add(%x.10, %y.11)"], rounding="")
    assert hlo.as_rounded(text) is text
