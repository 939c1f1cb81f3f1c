"""Flags that a script's argparse takes without a value, and SageMaker gives one."""

from __future__ import annotations

import argparse
import ast
import re
from types import SimpleNamespace

import pytest

from tests.unit.sdk.porting.test_patch import script
from windtunnel.porting import flags

PARSER = "import argparse\nparser = argparse.ArgumentParser()\n{}\nargs = parser.{}()\n"


def refused(lines: str, *names: str, parse: str = "parse_args") -> list[str]:
    """The remarks on a script with these lines."""
    return [str(finding) for finding in flags.refused(script(PARSER.format(lines, parse)), names)]


def misread(lines: str, values: dict[str, object], parse: str = "parse_args") -> list[str]:
    """The remarks on these values."""
    return [str(finding) for finding in flags.misread(script(PARSER.format(lines, parse)), values)]


@pytest.mark.parametrize(
    "action", ['"store_true"', '"store_false"', '"count"', "argparse.BooleanOptionalAction"]
)
def test_a_flag_is_named_with_what_to_write_instead(action: str) -> None:
    """With its line; what is not a hyperparameter of this job is not said."""
    lines = f'parser.add_argument("--epochs", type=int)\nparser.add_argument("-f", "--fast", action={action})'
    (said,) = refused(lines, "fast", "epochs")
    assert said.startswith("4: --fast is a flag without a value")
    assert refused(lines, "epochs") == []
    assert refused(f"{lines}\nprint(sys.argv[0], len(sys.argv))\nparser.parse_args(sys.argv[1:])", "fast")
    # What it names does what it says: with a value as the toolkit gives it, without one, and left out.
    advised = said[said.index("add_argument(") :].removesuffix(".")
    parser = argparse.ArgumentParser()
    eval(f"parser.{advised}", {"parser": parser})  # noqa: S307 - our own words
    for given, meant in (
        (["--fast", "True"], True),
        (["--fast", "False"], False),
        (["--fast"], True),
        ([], False),
    ):
        assert parser.parse_args(given).fast is meant


@pytest.mark.parametrize(
    ("declared", "value", "becomes", "meant"),
    [
        ("bool", False, "True", False),
        ("bool", "False", "True", False),
        ("list", [1, 2], "a list of that text's characters", [1, 2]),
        ("bool", True, None, None),
        ("list", "ab", None, None),
        ("str", False, None, None),
    ],
)
def test_a_value_that_becomes_another_is_named_with_what_to_write_instead(
    declared: str, value: object, becomes: str | None, meant: object
) -> None:
    """argparse says nothing to it, and the script trains with what nobody asked for."""
    line = f'parser.add_argument("--fast", type={declared})'
    said = misread(line, {"fast": value}, "parse_known_args")
    if becomes is None:
        assert said == []
        return
    assert said[0].startswith(
        f"3: --fast {value} reaches the script as text, and type={declared} makes it {becomes}"
    )
    parser = argparse.ArgumentParser()
    advised = said[0][said[0].index("add_argument(") :].removesuffix(".")
    eval(f"parser.{advised}", {"parser": parser, "ast": ast})  # noqa: S307 - our own words
    assert parser.parse_args(["--fast", str(value)]).fast == meant


@pytest.mark.parametrize(
    ("declared", "value", "said"),
    [
        ("type=int", "three", "type=int cannot read it, .*'invalid int value'. Give it a whole number."),
        ("type=int", True, "'invalid int value'"),
        (
            'type=float, nargs="?"',
            "fast",
            "type=float cannot read it, .*'invalid float value'. Give it a number.",
        ),
        ("choices=['adamw', 'sgd']", "adam", "'invalid choice'. It takes adamw, sgd."),
        ("type=int, choices=(1, 2)", 3, "It takes 1, 2."),
        ("type=float", 3, None),
        ("type=int, choices=(1, 2)", 2, None),
        ("choices=['1', '2']", 2, None),
        ("type=str.lower, choices=['a']", "A", None),
        ("type=number", "three", None),
        ("choices=NAMES", "three", None),
        ('choices="abc"', "d", None),
        ("action=Own, type=int", "three", None),
    ],
)
def test_a_value_that_argparse_refuses_is_named_with_what_it_takes(
    declared: str, value: object, said: str | None
) -> None:
    """The name is right there, so that the script's own error would come only when the job runs."""
    line = f'parser.add_argument("-n", {declared})'
    for parse in ("parse_args", "parse_known_args"):
        found = misread(line, {"n": value}, parse)
        assert bool(found) is bool(said)
        assert all(re.search(f"^3: -n {value}: .*{said}", one) for one in found)
    assert misread(f"{line}\nother.add_argument('-n')", {"n": value}) == []
    assert misread(line, {"n": value}, "parse_known_args([]) and parser.parse_args") == []


@pytest.mark.parametrize("other", ["def bool(text): ...", 'other.add_argument("--fast")'])
def test_a_type_that_is_not_the_built_in_one(other: str) -> None:
    """A name that the script has given to something else; another parser that reads text."""
    assert misread(f'import sys\nparser.add_argument("--fast", type=bool)\n{other}', {"fast": False}) == []


_FAST = 'import sys\nparser.add_argument("--fast", action="store_true")'


@pytest.mark.parametrize(
    ("lines", "parse"),
    [
        ('parser.add_argument("--fast", action="store_true")', "parse_known_args"),
        (
            'parser.add_argument("--fast", action="store_true")\nparser.add_argument("rest", nargs="*")',
            "parse_args",
        ),
        ('parser.add_argument("--fast", action="store_true")\nparser.add_argument(name)', "parse_args"),
        ('parser.add_argument("--fast", action="store_true")\nother.add_argument("--fast")', "parse_args"),
        ('parser.add_argument("--fast", action=chosen)', "parse_args"),
        ('parser.add_argument("--fast", type=bool)', "parse_args"),
        ("", "parse_args"),
        # What the parser gets is not the command line.
        (f"{_FAST}\nsys.argv = [one for one in sys.argv if one != 'True']", "parse_args"),
        (f"{_FAST}\nsys.argv.remove('True')", "parse_args"),
        (f"{_FAST}\nparser.parse_args(without_values(sys.argv[1:]))", "parse_args"),
        (f"{_FAST}\nparser.parse_args([])", "parse_args"),
        (f"{_FAST}\nparser.parse_args_into_dataclasses(return_remaining_strings=True)", "parse_args"),
    ],
)
def test_where_it_may_go_well_nothing_is_said(lines: str, parse: str) -> None:
    """Or a job that runs would be refused."""
    assert refused(lines, "fast", parse=parse) == []


def test_an_option_that_the_script_does_not_have() -> None:
    """With the one that was meant; a beginning of one is enough, as for argparse."""
    lines = 'parser.add_argument("--batch-size", type=int)\nparser.add_argument("-e", "--epochs")'
    (said,) = refused(lines, "batch_size", "epochs", "e", "batch")
    assert said.startswith("3: the script has no option --batch_size") and "'batch-size'" in said
    (said,) = refused(lines, "nosuch")
    assert said.endswith("'unrecognized arguments'.")


@pytest.mark.parametrize(
    ("parse", "what"),
    [("parse_args", "ends with 'unrecognized arguments'"), ("parse_known_args", "leaves it unread")],
)
def test_an_option_of_one_letter(parse: str, what: str) -> None:
    """AWS's toolkit gives it one dash. It is named right, so that naming it otherwise is no advice."""
    lines = 'parser.add_argument("--epochs")\nparser.add_argument("--d", type=int)'
    (said,) = refused(lines, "d", parse=parse)
    assert said.startswith("4: SageMaker gives a hyperparameter of one letter with one dash, as -d VALUE")
    assert f"has only --d, and {what}" in said and "name the hyperparameter" not in said
    assert 'add_argument("-d", "--d", ...)' in said and "longer name" in said
    assert refused(lines.replace('"--d"', '"-d", "--d"'), "d", parse=parse) == []
    assert refused(lines.replace('"--d"', '"--dim"'), "dim", parse=parse) == []
    parser = argparse.ArgumentParser()
    parser.add_argument("--d")
    assert parser.parse_known_args(["-d", "64"]) == (argparse.Namespace(d=None), ["-d", "64"])


@pytest.mark.parametrize(
    "more",
    [
        "add_more(parser)",
        "parser.add_subparsers()",
        "other = argparse.ArgumentParser(parents=[parser])",
        "group = parser.add_argument_group()",
    ],
)
def test_a_parser_that_may_have_other_options(more: str) -> None:
    """Nothing is said where they are not all seen."""
    assert refused(f'parser.add_argument("--epochs")\n{more}', "nosuch") == []


def test_hydra_takes_other_words_than_the_toolkit_gives() -> None:
    """Told with the line that makes of these what it takes, unless the script has one."""
    text = "import hydra, sys\n@hydra.main(version_base=None)\ndef main(cfg):\n    train(cfg)\n{}main()\n"

    def told(before: str, *names: str) -> list[str]:
        return [str(finding) for finding in flags.refused(script(text.format(before)), names)]

    (said,) = told("", "lr", "epochs")
    assert said.startswith("2: Hydra takes epochs=VALUE, but SageMaker gives --epochs VALUE")
    advised = said[said.index("sys.argv[1:] = ") :].removesuffix(".")
    words = SimpleNamespace(argv=["train.py", "--epochs", "3", "--optimizer.lr", "0.1"])
    exec(advised, {"sys": words})  # noqa: S102 - our own words
    assert words.argv == ["train.py", "epochs=3", "optimizer.lr=0.1"]
    assert told(f"{advised}\n", "lr") == []
    assert told("") == []
