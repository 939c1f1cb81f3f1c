"""Hyperparameters that the script's argparse refuses or misreads: SageMaker passes each with a value, as text."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from windtunnel.porting.finding import Finding
from windtunnel.porting.nodes import argument, arguments, constant, is_method, keyword
from windtunnel.porting.script import Script

_WITHOUT_VALUE = ("store_true", "store_false", "store_const", "append_const", "count")

_TRUTH = 'type=lambda text: text.lower() == "true"'
_INSTEAD = f'nargs="?", const=True, default=False, {_TRUTH}'
"""Arguments for a flag: it then takes the value that the toolkit passes, and still works without one."""
_USUAL = ("add_argument", "parse_args", "parse_known_args", "set_defaults", "error", "print_help", "exit")
"""Methods of a parser that add no options, or only options that this module reads."""
_NO = ("false", "no", "off", "0")
_READ = {"str": str, "int": int, "float": float}
"""How argparse reads a value of these types; where it cannot, they are ValueErrors."""


def refused(script: Script, hyperparameters: Collection[str]) -> Iterator[Finding]:
    """Findings on ``hyperparameters`` with which argparse ends the script, exit code 2: flags, as AWS's toolkit calls
    ``script --flag True``, and options that the script does not have.

    None where that may go well: the parser ignores what it does not know, gets other words than the command line's, or
    has positional arguments. But one that ignores ``-d 64``, as its option is ``--d``, ignores what was meant for it.
    """
    calls = _declarations(script)
    yield from _of_hydra(script, hyperparameters)
    if not _gets_the_command_line(script):
        return
    ends = _gets_all_words(script)
    if not all(_options(call) and all(name.startswith("-") for name in _options(call)) for call in calls):
        return
    known = [option for call in calls for option in _options(call)] if _has_all_options(script) else []
    for name in sorted(hyperparameters):
        option = _option(name)
        named = [call for call in calls if option in _options(call)]
        if known and not any(one.startswith(option) for one in known):
            same = [one for one in known if _plain(one) == _plain(option)]
            if f"-{option}" in same:  # of one letter
                what = "ends with 'unrecognized arguments'" if ends else "leaves it unread"
                yield Finding(
                    next(call.lineno for call in calls if f"-{option}" in _options(call)),
                    f"SageMaker gives a hyperparameter of one letter with one dash, as {option} VALUE. The script has "
                    f'only -{option}, and {what}. Write add_argument("{option}", "-{option}", ...), or give both a '
                    "longer name.",
                )
                continue
            if not ends:
                continue
            instead = f" It has {same[0]}: name the hyperparameter {same[0].lstrip('-')!r}." if same else ""
            yield Finding(
                calls[0].lineno,
                f"the script has no option {option}: its argparse ends with 'unrecognized arguments'.{instead}",
            )
        if ends and named and all(map(_takes_none, named)):
            yield Finding(
                named[0].lineno,
                f"{option} is a flag without a value, but SageMaker gives each hyperparameter a value: called with "
                f"{option} True, the script ends with 'unrecognized arguments: True'. Let the flag take a value: "
                f'add_argument("{option}", {_INSTEAD}).',
            )


def _of_hydra(script: Script, hyperparameters: Collection[str]) -> Iterator[Finding]:
    """A finding on all hyperparameters, where Hydra reads the command line as it is."""
    if not hyperparameters or any(script.dotted(node) == "sys.argv" for node in script.walk(ast.Attribute)):
        return
    for call, name in script.calls:
        if name == "hydra.main":
            first = min(hyperparameters)
            yield Finding(
                call.lineno,
                f"Hydra takes {first}=VALUE, but SageMaker gives --{first} VALUE: the script ends with 'unrecognized "
                "arguments'. Write before the call: sys.argv[1:] = [f\"{name.lstrip('-')}={value}\" for name, value in "
                "zip(sys.argv[1::2], sys.argv[2::2])].",
            )


def misread(script: Script, hyperparameters: Mapping[str, Any]) -> Iterator[Finding]:
    """Findings on values that argparse refuses, as their ``type=int`` or ``choices`` cannot take them, and on those
    that silently become others: ``type=bool`` of ``False``, ``type=list`` of a list.
    """
    own = script.bound_names()
    reads = _gets_the_command_line(script)
    for name, value in sorted(hyperparameters.items()):
        option = _option(name)
        named = [call for call in _declarations(script) if option in _options(call)]
        refusals = [_refusal(call, str(value), own) for call in named if reads]
        if refusals and all(refusals):
            yield Finding(named[0].lineno, f"{option} {value}: {refusals[0]}")
            continue
        types = {kind and ast.unparse(kind) for call in named for kind in [argument(call, "type")]} - own
        if types == {"bool"} and str(value).lower() in _NO:
            becomes, instead = "True, as every text that is not empty", _TRUTH
        elif types == {"list"} and isinstance(value, list):
            becomes, instead = "a list of that text's characters", "type=ast.literal_eval"
        else:
            continue
        yield Finding(
            named[0].lineno,
            f"{option} {value} reaches the script as text, and type={types.pop()} makes it {becomes}. To read the "
            f'text: add_argument("{option}", {instead}).',
        )


def _refusal(call: ast.Call, text: str, own: Collection[str]) -> str:
    """Why this declaration of an option refuses a value; empty if it takes it, or that is not known.

    ``own``: the names that the script has given to something.
    """
    kind = argument(call, "type")
    name = "str" if kind is None else ast.unparse(kind)
    if name in own or name not in _READ or argument(call, "action") is not None:
        return ""
    try:
        value = _READ[name](text)
    except ValueError:
        number = "a whole number" if name == "int" else "a number"
        return (
            f"type={name} cannot read it, and the script ends with 'invalid {name} value'. Give it {number}."
        )
    try:
        choices = ast.literal_eval(argument(call, "choices") or "None")
    except ValueError:  # no literal
        return ""
    if not isinstance(choices, list | tuple) or value in choices:
        return ""
    return f"the script ends with 'invalid choice'. It takes {', '.join(map(str, choices))}."


def _gets_all_words(script: Script) -> bool:
    """Whether argparse reads the command line as it is, and ends the script over an unknown word."""
    return _gets_the_command_line(script) and not any(
        is_method(call, "parse_known_args", "parse_known_intermixed_args")
        or keyword(call, "return_remaining_strings")
        for call, _ in script.calls
    )


def _gets_the_command_line(script: Script) -> bool:
    """Whether argparse reads the command line as it is."""
    for call, _ in script.calls:
        given = (ast.unparse(one) for one in arguments(call) if not isinstance(one, ast.Name))
        reads = is_method(call, "parse_args", "parse_known_args")
        if reads and any(one not in ("sys.argv[1:]", "None") for one in given):
            return False
    uses = (node for node in script.walk(ast.Attribute) if script.dotted(node) == "sys.argv")
    return all(isinstance(_around(script, node), ast.Call) for node in uses)


def _has_all_options(script: Script) -> bool:
    """Whether the script makes one parser, and gives it to nobody who could add options."""
    made = [call for call, name in script.calls if name == "argparse.ArgumentParser"]
    if len(made) != 1 or made[0].args or keyword(made[0], "parents"):
        return False
    if not isinstance(assigned := script.parents[made[0]], ast.Assign) or len(assigned.targets) != 1:
        return False
    parser = ast.unparse(assigned.targets[0])
    for node in script.walk(ast.Name, ast.Attribute):
        if ast.unparse(node) == parser and node is not assigned.targets[0]:
            method = script.parents[node]
            if not isinstance(method, ast.Attribute) or method.attr not in _USUAL:
                return False
    return True


def _plain(option: str) -> str:
    return option.lstrip("-").replace("_", "-").lower()


def _around(script: Script, node: ast.AST) -> ast.AST:
    """What an expression, or a part of it that is read, is passed to: a call, unless it is called or changed itself."""
    outer = script.parents[node]
    read = isinstance(outer, ast.Subscript) and isinstance(outer.ctx, ast.Load)
    return script.parents[outer] if read else outer


def _declarations(script: Script) -> list[ast.Call]:
    return [call for call, _ in script.calls if is_method(call, "add_argument")]


def _option(name: str) -> str:
    """A hyperparameter's name as an option, as AWS's toolkit writes it."""
    return f"{'-' if len(name) == 1 else '--'}{name}"


def _options(call: ast.Call) -> list[str]:
    return [name for one in call.args if isinstance(name := constant(one), str)]


def _takes_none(call: ast.Call) -> bool:
    action = argument(call, "action")
    if action is None:
        return False
    words = ast.unparse(action).rpartition(".")[2]
    return constant(action) in _WITHOUT_VALUE or words == "BooleanOptionalAction"
