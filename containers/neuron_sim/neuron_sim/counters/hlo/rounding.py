"""Remove the simulation of stochastic rounding from a module's text, so that it is counted as on the device.

The device rounds results in bf16 and fp16 without additional instructions. `device/stochastic_rounding.py` simulates
that: for each result it records fp32 arithmetic, the next number of a counter, and a call of about 70 instructions.
"""

from __future__ import annotations

import re
from collections import Counter

from neuron_sim.counters.hlo.opcodes import ELEMENTWISE, VIEWS

NAME = "stochastic_round"
"""The name of the simulator's operation, with which XLA names the computation of each call."""
_COMPUTATION = re.compile(rf"^%?{NAME}[.\d]* \(.*?^\}}\n+", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"(?:ROOT )?%([\w.-]+) = (\w+)\[([\d,]*)\]\S* ([a-z][\w-]*)\(")
_OPERANDS = re.compile(r"[ )][a-z][\w-]*\(([^()]*)")
_NAME = re.compile(r"%([\w.-]+)")


def as_rounded(text: str) -> str:
    """The module's text with bf16 or fp16 arithmetic in place of each such call."""
    return _Text(_COMPUTATION.sub("", text)).without_calls() if NAME in text else text


class _Text:
    """The lines of a module, and the values that they define, by name."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines(keepends=True)
        found = ((number, _LINE.search(line, 0, 400)) for number, line in enumerate(self.lines))
        self.made = {match[1]: (number, match[2], match[3], match[4]) for number, match in found if match}
        self.uses = Counter(name for line in self.lines for name in _operands(line))
        self.instead: dict[str, str] = {}

    def without_calls(self) -> str:
        """The text without the calls: a rounded sum of bf16 (or fp16) is a sum in it; what was fp32 is converted."""
        for name, (number, narrow, *_) in list(self.made.items()):
            if f"to_apply=%{NAME}" not in self.lines[number]:
                continue
            value, key = _operands(self.lines[number])
            region = self._computed_from(narrow, value)
            if region is None:
                self.lines[number] = re.sub(r" call\(.*", f" convert(%{value})", self.lines[number])
            else:
                for one in region:
                    self._narrow(one, narrow)
                self.instead[name] = value
                self.lines[number] = ""
            self._uncount(key)
        return _NAME.sub(lambda match: f"%{self._name(match[1])}", "".join(self.lines))

    def _computed_from(self, narrow: str, name: str) -> list[int] | None:
        """The lines of fp32 arithmetic from which a value is computed, if its inputs were ``narrow`` or scalars, and
        nothing else reads a value of those lines; else None.
        """
        lines, waiting = [], [name]
        for one in waiting:  # grows in the loop
            number, kind, sizes, opcode = self.made.get(one, (0, "", "", ""))
            if self._was(narrow, one) or not sizes:
                continue
            if (
                kind != "f32"
                or self.uses[one] != 1
                or opcode not in ELEMENTWISE | VIEWS
                or opcode == "convert"
            ):
                return None
            lines.append(number)
            waiting += _operands(self.lines[number])
        return lines

    def _was(self, narrow: str, name: str) -> bool:
        number, kind, _, opcode = self.made.get(name, (0, "", "", ""))
        if kind != "f32" or opcode != "convert":
            return False
        return self.made.get(self._name(_operands(self.lines[number])[0]), ("", ""))[1] == narrow

    def _narrow(self, number: int, kind: str) -> None:
        """Turn a line of fp32 arithmetic into this kind, which reads the values that its inputs were converted from."""
        line = self.lines[number].replace(" = f32[", f" = {kind}[", 1)
        for one in _operands(line):
            if self._was(kind, one):
                before = _operands(self.lines[self.made[one][0]])[0]
                line = re.sub(rf"%{re.escape(one)}(?![\w.-])", f"%{before}", line, count=1)
                self.uses[before] += 1
                self._drop(one)
        self.lines[number] = line
        if name := _LINE.search(line):
            self.made[name[1]] = (number, kind, name[3], name[4])

    def _uncount(self, key: str) -> None:
        """Remove the addition that made this number of the counter."""
        number, *_, opcode = self.made.get(key, (0, ""))
        if opcode == "add":
            self.instead[key], step = _operands(self.lines[number])
            self.lines[number] = ""
            self._drop(step)

    def _drop(self, name: str) -> None:
        """Count one reader less of a value. After the last, remove its line, and then do the same for its operands."""
        waiting = [name]
        for one in waiting:  # grows in the loop
            self.uses[one] -= 1
            number, *_, opcode = self.made.get(one, (0, "parameter"))
            if not self.uses[one] and opcode != "parameter":
                waiting += _operands(self.lines[number])
                self.lines[number] = ""

    def _name(self, name: str) -> str:
        while name in self.instead:
            name = self.instead[name]
        return name


def _operands(line: str) -> list[str]:
    found = _OPERANDS.search(line) if " = " in line else None
    return _NAME.findall(found[1]) if found else []
