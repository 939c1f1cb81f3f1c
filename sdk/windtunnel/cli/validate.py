"""`windtunnel validate`: the price model held against published throughputs."""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

from windtunnel.cli import output
from windtunnel.errors import ConfigurationError

_EPILOG = """\
FILE.csv has the columns of the published tables: config, architecture (or layers, hidden_size,
attention_heads, ffn_hidden_size, kv_hidden_size, vocabulary, family), parameters, instance_type, nodes,
tensor_parallel, pipeline_parallel, pipeline_interleaving, data_parallel, microbatch, global_batch,
sequence_length, storage_dtype, matmul_dtype, gradient_allreduce_bytes_per_parameter, recompute, zero1, attention,
sequences_per_second, published_min, published_max, network_gbps (of one node), neuron_version (as 2.21),
stack (the software), source. Needed are a model, instance_type, microbatch and sequence_length. What else is
missing is assumed, said in the row's notes, and widens its interval where it matters.
A script is checked with `windtunnel check SCRIPT`.
"""


def add_parser(commands: Any) -> None:
    """Register the command."""
    validate = commands.add_parser(
        "validate",
        help="hold the price model against published throughputs, and show its errors",
        description="Predict every published row, and show the errors in sample and left out.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="windtunnel validate [-h] [--published FILE.csv] [--json] [--html FILE] [--png FILE]   "
        "(a script: windtunnel check SCRIPT)",
    )
    validate.add_argument("script", nargs="*", help=argparse.SUPPRESS)  # what this command took before
    validate.add_argument(
        "--published", type=Path, metavar="FILE.csv", help="other rows than the built-in ones"
    )
    output.add_arguments(validate)
    validate.set_defaults(func=run_validate)


def run_validate(arguments: argparse.Namespace) -> int:
    """Print the errors of the built-in rows, or of a file's. Returns the exit code."""
    from windtunnel.reports.validation.report import validated

    if arguments.script:
        given = arguments.script[0]
        hint = f"--published {given}" if given.lower().endswith(".csv") else "without an argument"
        raise ConfigurationError(
            f"validate holds the price model against published rows and takes no {given!r}. "
            f"To check a script: windtunnel check {given}. To validate: windtunnel validate {hint}."
        )
    table = None if arguments.published is None else read_table(arguments.published)
    return output.show(validated(table), arguments)


def _delimiter(lines: list[str]) -> str:
    """Spreadsheets of some countries write semicolons."""
    return max(",;\t", key=lines[0].count) if lines else ","


def read_table(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file with a header line; lines that start with # and empty lines are left out.

    Raises:
        ConfigurationError: no such file, no text, or no table.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is no UTF-8 text: {error.reason}") from error
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    try:
        rows = [
            {key: value for key, value in row.items() if isinstance(key, str) and isinstance(value, str)}
            for row in csv.DictReader(lines, strict=True, delimiter=_delimiter(lines))
        ]
    except csv.Error as error:
        raise ConfigurationError(f"{path} is no CSV table: {error}") from error
    if not rows:
        raise ConfigurationError(
            f"{path} has no rows. Expected is a header line (config, architecture, instance_type, "
            "microbatch, sequence_length, ...) and a line for each configuration."
        )
    return rows
