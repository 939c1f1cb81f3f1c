"""Errors in the command line's words: the library's messages name arguments of Python."""

from __future__ import annotations

import argparse
import re

_WORDS = {
    "FullScale: ": "",
    "PerDevice(32)": "--batch-per-device 32",
    "Give an Architecture with its dimensions,": "Give --architecture a config.json with one of these,",
    " an Architecture with its dimensions,": "",
    ", or None,": ",",
    "one of None, ": "one of ",
    " batches of each loader, or True": " batches of each loader",
    "with image_uri=, and session=AwsSession()": "with --image-uri, and take --aws",
    "entry_point=": "script ",
    "'per_device'": "'per-device'",
    "state a discount below on-demand, at most": "state it below on-demand, such as --discount 60%, at most",
}
_OPTIONS = {
    "budget_usd": "--budget",
    "deadline_hours": "--deadline",
    "loader_samples_per_s": "--loader-samples-per-second",
    "per_device": "per-device",
    "preparation_s": "--preparation-seconds",
    "train_samples": "--samples",
}
"""Arguments whose options have another name."""
_WITH_OPTION = re.compile(r"\b(\w+)(?:=\w+)? \((--[^)]+)\)|(?:\w+=\w+|PerDevice\(32\)), (?=--)")
"""An argument beside its option, which says the same."""
_NAME = re.compile(r"(?<![\w/.'-])([a-z]\w*)(?:(=)(?=[^.\s])|(?![\w/]|\.\w))")


def option(name: str) -> str:
    """The option of an argument's name: ``batch_size`` -> ``--batch-size``."""
    return f"--{name.replace('_', '-')}"


def worded(error: Exception, args: argparse.Namespace) -> str:
    """The message with the options of this command in place of the arguments of Python.

    What the user typed stays as it is.
    """
    text = str(error)
    if text.startswith("on_gpu "):  # what follows are the names that --gpu takes
        return text.replace("on_gpu", "--gpu", 1)
    given = [one for value in vars(args).values() for one in (value if isinstance(value, list) else [value])]
    typed = {name for word in given if isinstance(word, str) for name in re.findall(r"\w+", word)}

    def option_alone(found: re.Match[str]) -> str:
        return (found[2] or "") if found[1] is None or hasattr(args, found[1]) else found[0]

    def option_of(found: re.Match[str]) -> str:
        name = found[1]
        subject = not found.start() and found.string.startswith(" must be ", found.end())
        is_word = "_" not in name and not found[2] and not subject
        if is_word or name in typed or not (name in _OPTIONS or hasattr(args, name)):
            return found[0]
        has_value = found[2] and found.string[found.end()] not in ",)"
        return _OPTIONS.get(name, option(name)) + (" " if has_value else "")

    text = _WITH_OPTION.sub(option_alone, text)
    for word, ours in _WORDS.items():
        if word.strip("'= ") not in typed:
            text = text.replace(word, ours)
    return _NAME.sub(option_of, text)
