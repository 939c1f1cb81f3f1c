"""The parser of all commands, also of those that the backend runs: what is said of a mistaken command line."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import islice, takewhile
from typing import Any, NoReturn

from windtunnel.errors import did_you_mean
from windtunnel.rendering.format import lines

_FEW = 2
"""Commands with an option of this name that are told: what many have may mean something else in each."""


class Parser(argparse.ArgumentParser):
    """Names an unknown option before all else, and suggests the likely word where one is mistyped.

    Options are not abbreviated: what an abbreviation means could change with the next version's options.

    Attributes:
        arrange: puts the words in the order in which argparse takes them as they are meant.
        explain: what else there is to say of unknown arguments; it gets all words, and the unknown ones.
        others: the parsers of all commands, by name.
        in_python: what to call in Python instead of a command that there is not.
    """

    def __init__(self, **settings: Any) -> None:
        """As argparse's."""
        super().__init__(**{**settings, "allow_abbrev": False})
        self.arrange: Callable[[Sequence[str]], list[str]] = list
        self.explain: Callable[[Sequence[str], Sequence[str]], str] = self.of_another_command
        self.others: Mapping[str, Parser] = {}
        self.in_python: Mapping[str, str] = {}
        self._given: list[str] = []
        # argparse's own pattern takes -1 for a value and -15B for an option, which then seems to lack its value.
        self._negative_number_matcher = re.compile(r"-\$?\.?\d")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """As argparse's, but an unknown argument is an error, of its command and not of ``windtunnel`` as a whole."""
        self._given = self._together(self.arrange(args or ()))
        known, unknown = super().parse_known_args(self._given, namespace)
        if unknown:
            self._refuse(unknown)
        return known, unknown

    def _together(self, words: list[str]) -> list[str]:
        """Turn ``NAME -x DIR`` into ``-x NAME DIR``: argparse fills all arguments that take several words, or maybe
        none, from the first place where it finds one.

        Words stay where it is not certain which are values: after an unknown option, or one that takes several.
        """
        options: list[str] = []
        own: list[str] = []
        found = iter(words if self._subparsers is None else ())
        for word in found:
            if not word.startswith("-"):
                own.append(word)
                continue
            option = self._option_string_actions.get(word.partition("=")[0])
            if option is None or option.nargs not in (None, 0):
                return words
            options.append(word)
            if self.takes_value(word):
                options.extend(islice(found, 1))
        return [*options, *own] if len(own) > 1 else words

    def error(self, message: str) -> NoReturn:
        """Print an error without argparse's usage (up to 30 lines); suggest likely words for a wrong choice.

        argparse takes the value of an unknown option for a positional argument, and may complain of that first.
        """
        own = takewhile(lambda word: word.startswith("-"), self._given) if self._subparsers else self._given
        unknown = [word for word in own if word.startswith("--") and not self.has(word)]
        if unknown:
            self._refuse(unknown)
        wrong = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        hint = did_you_mean(wrong[1], re.findall(r"[\w-]+", wrong[2])) if wrong else ""
        if wrong and wrong[1] in self.in_python:
            hint = f" In Python it is {self.in_python[wrong[1]]}"
        self._end(f"{message}.{hint}" if hint else message)

    def has(self, word: str) -> bool:
        """Whether a word is one of the options, maybe with its value."""
        return word.partition("=")[0] in self._option_string_actions

    def of_another_command(self, _given: Sequence[str], unknown: Sequence[str], *commands: str) -> str:
        """The few commands, of all or of ``commands``, that have an option which this one has not."""
        have = [
            name
            for name in commands or self.others
            if name in self.others and self.others[name].has(unknown[0])
        ]
        return f" It is an option of {', '.join(have)}." if 0 < len(have) <= _FEW else ""

    def takes_value(self, word: str) -> bool:
        """Whether a word is an option whose value is the next word."""
        action = self._option_string_actions.get(word)
        return action is not None and action.nargs != 0

    def _refuse(self, unknown: Sequence[str]) -> NoReturn:
        options = [word for word in unknown if word.startswith("-")] or unknown
        near = did_you_mean(options[0].partition("=")[0], self._option_string_actions)
        hint = near or self.explain(self._given, options)
        self._end(f"unrecognized arguments: {' '.join(options)}.{hint}")

    def _end(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {lines(message)}\nWhat it takes: {self.prog} --help\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """As argparse's, but raise an error if help cannot be written: some Python versions ignore that."""
        if file is sys.stdout:
            file.write(message)
            return
        with contextlib.suppress(OSError):  # if stderr cannot be written, there is no way to say so
            super()._print_message(message, file)
