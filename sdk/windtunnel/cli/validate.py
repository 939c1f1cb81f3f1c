"""`windtunnel validate`: compare the price model with published throughputs."""

from __future__ import annotations

import argparse
import csv
import re
from pathlib import Path
from typing import Any

from windtunnel.cli import output
from windtunnel.errors import ConfigurationError

_WITH_DECIMAL_COMMA = re.compile(r"-?(\d{1,3}(\.\d{3})+|\d+),(\d{1,2}|\d{4,})")
_EPILOG = """\
FILE.csv has the columns of the published tables: config, architecture (or layers, hidden_size,
attention_heads, ffn_hidden_size, kv_hidden_size, vocabulary, family), parameters, instance_type, nodes,
accelerators (the workers), tensor_parallel, pipeline_parallel, pipeline_interleaving, data_parallel,
microbatch, global_batch, sequence_length, storage_dtype, matmul_dtype, gradient_allreduce_bytes_per_parameter,
recompute, zero1, attention, lora_rank, lora_targets (attention or all-linear),
sequences_per_second, published_min, published_max, network_gbps (of one node), neuron_version (as 2.21),
stack (the software), source. Needed are a model, instance_type, microbatch and sequence_length. What else is
missing is assumed, said in the row's notes, and widens its interval where it matters. Lines that begin with #
and have fewer cells than the header are comments. Semicolons may separate; then a comma is a decimal mark.
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
    validate.add_argument("script", nargs="*", help=argparse.SUPPRESS)  # an older version took a script here
    validate.add_argument(
        "--published", type=Path, metavar="FILE.csv", help="other rows than the built-in ones"
    )
    output.add_arguments(validate)
    validate.set_defaults(func=run_validate)


def run_validate(arguments: argparse.Namespace) -> int:
    """Print the model's errors for the built-in rows, or for a file's rows. Returns the exit code."""
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
    """The column separator: a comma, tab or semicolon (which spreadsheets write in some countries)."""
    return max(",;\t", key=lines[0].count) if lines else ","


def _without_comments(lines: list[str]) -> list[str]:
    """The lines without blank ones and comments. A row may begin with # too, so a comment also has fewer cells."""
    filled = [line for line in lines if line.strip()]
    start = next((number for number, line in enumerate(filled) if not line.startswith("#")), len(filled))
    table = filled[start:]
    separator = _delimiter(table)
    cells = table[0].count(separator) if table else 0
    return [line for line in table if not line.startswith("#") or line.count(separator) >= cells > 0]


def _decimal_point(cell: Any) -> Any:
    """``1.234,5`` as ``1234.5``; 1,234 and 1.234 are left unchanged, because they may be thousands."""
    if not isinstance(cell, str) or not _WITH_DECIMAL_COMMA.fullmatch(cell.strip()):
        return cell
    return cell.strip().replace(".", "").replace(",", ".")


def read_table(path: Path) -> list[dict[Any, Any]]:
    """The rows of a CSV file with a header line; empty lines and comments (#) are left out.

    Cells beyond the header's columns are a list under None. If semicolons separate cells, a comma is a decimal mark.

    Raises:
        ConfigurationError: the file cannot be read, is no UTF-8 text, or is no table.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is no UTF-8 text: {error.reason}") from error
    lines = _without_comments(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    delimiter = _delimiter(lines)
    reader = csv.DictReader(lines, strict=True, delimiter=delimiter)
    try:
        columns = [name.strip().lower() for name in reader.fieldnames or () if name.strip()]
        rows = list(reader)
    except csv.Error as error:
        at = lines[min(reader.line_num, len(lines) - 1)]
        raise ConfigurationError(
            f"{path} is no CSV table: {error}, in or before the line {at[:200]!r}"
        ) from error
    if not rows:
        raise ConfigurationError(
            f"{path} has no rows. Expected is a header line (config, architecture, instance_type, "
            "microbatch, sequence_length, ...) and a line for each configuration."
        )
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise ConfigurationError(f"{path} has more than one column {', '.join(twice)}. Leave one of each.")
    if delimiter == ";":
        rows = [{key: _decimal_point(value) for key, value in row.items()} for row in rows]
    return rows
