"""DataProcessing: filters a record before it is sent (InputFilter), and its answer (JoinSource, OutputFilter).

https://docs.aws.amazon.com/sagemaker/latest/dg/batch-transform-data-processing.html
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from windtunnel_local.service.batch.json_path import JsonPath
from windtunnel_local.service.ground.errors import InputError, ValidationFailed

_OUTPUT, _INPUT = "SageMakerOutput", "SageMakerInput"
_FORMS: Mapping[str, Literal["csv", "json"]] = {
    "text/csv": "csv",
    "application/json": "json",
    "application/jsonlines": "json",
}
_SHOWN = 200
csv.field_size_limit(sys.maxsize)  # MaxPayloadInMB limits a record already


@dataclass(frozen=True)
class DataProcessing:
    """The filters and the join of one job. ``form``: the format of records and answers."""

    form: Literal["csv", "json"]
    input_filter: JsonPath
    output_filter: JsonPath
    joins: bool

    def question(self, record: bytes) -> bytes:
        """The part of a record that is sent to the container. Raises ``InputError``."""
        if self.form == "json" and not record.strip():
            raise InputError(
                "a record is a blank line, which is no JSON to filter or to join with. Remove it"
            )
        if self.input_filter.is_root:
            return record
        chosen = self._chosen(self.input_filter, self._read(record, "record"), "InputFilter", record)
        return self._written(chosen) + (b"\n" if record.endswith(b"\n") else b"")

    def result(self, records: Sequence[bytes], answer: bytes) -> bytes:
        """The result to store, from the answer to these records: a line for each. Raises ``InputError``."""
        if not self.joins and self.output_filter.is_root:
            return answer
        answers = [answer] if len(records) == 1 else answer.splitlines()
        if len(answers) != len(records):
            raise InputError(
                f"{len(records)} records were answered with {len(answers)} lines, so that none can be joined with"
                " or filtered as its own. Answer a line for each, or set BatchStrategy to SingleRecord"
            )
        results = [self._result(*pair) for pair in zip(records, answers, strict=True)]
        return b"\n".join([*results, b""] if self.form == "csv" else results)  # the last row may be blank

    def _result(self, record: bytes, answer: bytes) -> bytes:
        value = self._read(answer, "answer")
        if self.joins:
            given = self._read(record, "record")
            if self.form == "csv":
                value = given + value
            else:
                value = {**(given if isinstance(given, dict) else {_INPUT: given}), _OUTPUT: value}
        return self._written(self._chosen(self.output_filter, value, "OutputFilter", answer))

    def _chosen(self, path: JsonPath, value: Any, member: str, data: bytes) -> Any:
        try:
            return path.select(value)
        except LookupError as error:
            raise InputError(f"{member} {path.text}: {error.args[0]} in {_shown(data)}") from error

    def _read(self, data: bytes, what: str) -> Any:
        try:
            text = data.decode()
            if self.form == "json":
                return json.loads(text)
            rows = list(csv.reader(io.StringIO(text.rstrip("\r\n"), newline=""), strict=True))
        except (ValueError, RecursionError, csv.Error) as error:
            raise InputError(f"the {what} {_shown(data)} is not {self.form.upper()}: {error}") from error
        if len(rows) > 1:
            raise InputError(f"the {what} {_shown(data)} is {len(rows)} rows of CSV, not one")
        return rows[0] if rows else []

    def _written(self, value: Any) -> bytes:
        if self.form == "json":
            dumped = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
            return dumped.encode(errors="backslashreplace")  # a lone surrogate, escaped as in the input
        text = io.StringIO()
        csv.writer(text, lineterminator="").writerow(value if isinstance(value, list) else [value])
        return text.getvalue().encode()


def data_processing(request: Mapping[str, Any]) -> DataProcessing | None:
    """The DataProcessing of a CreateTransformJob request; None if it changes nothing.

    Raises:
        ValidationFailed: a path is not supported, or not for this format of data.
    """
    asked = request.get("DataProcessing", {})
    try:
        before, after = JsonPath(asked.get("InputFilter", "$")), JsonPath(asked.get("OutputFilter", "$"))
    except ValueError as error:
        raise ValidationFailed(f"DataProcessing: {error}") from None
    joins = asked.get("JoinSource", "None") == "Input"
    if before.is_root and after.is_root and not joins:
        return None
    given, output = request["TransformInput"], request["TransformOutput"]
    kinds = [str(kind).partition(";")[0].strip() for kind in (given.get("ContentType"), output.get("Accept"))]
    forms = {_FORMS.get(kind) for kind in kinds}
    if len(forms) > 1 or None in forms:
        raise ValidationFailed(
            f"DataProcessing needs TransformInput.ContentType and TransformOutput.Accept of {', '.join(_FORMS)}, both"
            f" CSV or both JSON; given: {kinds[0]} and {kinds[1]}."
        )
    lines = (given.get("SplitType"), output.get("AssembleWith")) == ("Line", "Line")
    if not lines and kinds != ["application/json", "application/json"]:
        raise ValidationFailed(
            f"DataProcessing of {kinds[0]} needs TransformInput.SplitType and TransformOutput.AssembleWith Line."
        )
    form = _FORMS[kinds[0]]
    for path in (before, after):
        if form == "csv" and not path.is_index:
            raise ValidationFailed(
                f"DataProcessing: {path.text!r} cannot be used on CSV, whose columns have numbers, as in $[1:]."
            )
    return DataProcessing(form, before, after, joins)


def _shown(data: bytes) -> str:
    return repr(data[:_SHOWN].decode(errors="replace"))
