"""Every member of a request in botocore's model is honoured, kept, or refused by name."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest

from tests.unit.service.samples import channel, job, request
from windtunnel_local.service.answers import described
from windtunnel_local.service.batch.transform_members import TRANSFORM_JOB
from windtunnel_local.service.ground.errors import ValidationFailed
from windtunnel_local.service.hosting.hosting_members import ENDPOINT, ENDPOINT_CONFIG
from windtunnel_local.service.hosting.hosting_members import MODEL as HOSTED_MODEL
from windtunnel_local.service.request.members import Members
from windtunnel_local.service.request.training_members import TRAINING_JOB

HOME = pathlib.Path("/home")
Path = tuple[str, ...]
SERVED = TRAINING_JOB.honoured | frozenset(TRAINING_JOB.kept)


def leaves(shape: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every member of the model that is no structure of further ones, with its shape."""
    while shape.type_name == "list":
        shape = shape.member
    if shape.type_name == "structure":
        for name, member in shape.members.items():
            yield from leaves(member, (*path, name))
    else:
        yield path, shape


MODEL = botocore.session.get_session().get_service_model("sagemaker")
REQUEST = MODEL.operation_model("CreateTrainingJob").input_shape
LEAVES = dict(leaves(REQUEST))
PATHS = sorted(".".join(path) for path in LEAVES)


def sample(shape: Any) -> Any:
    """A value that asks for something."""
    kind = shape.type_name
    if kind == "string":
        return shape.enum[0] if shape.enum else "x"
    if kind == "map":
        return {"x": sample(shape.value)}
    return True if kind == "boolean" else 1


def nested(path: Path, leaf: Any, shape: Any = REQUEST) -> Any:
    """A document with one leaf, in lists where the model has lists."""
    if not path:
        return leaf
    if shape.type_name == "list":
        return [nested(path, leaf, shape.member)]
    return {path[0]: nested(path[1:], leaf, shape.members[path[0]])}


def is_list(path: Path) -> bool:
    """Whether a leaf is a list of plain values."""
    shape = REQUEST
    for name in path:
        while shape.type_name == "list":
            shape = shape.member
        shape = shape.members[name]
    return bool(shape.type_name == "list")


def merged(base: Any, extra: Any) -> Any:
    """``base`` with ``extra`` added; a list's only element is merged into the other's."""
    if isinstance(base, dict) and isinstance(extra, dict):
        return {**base, **{k: merged(base[k], v) if k in base else v for k, v in extra.items()}}
    if isinstance(base, list) and isinstance(extra, list):
        return [merged(base[0], extra[0])]
    return extra


def test_the_model_is_walked() -> None:
    """The walk finds what is known to be there, at every depth."""
    assert {"TrainingJobName", "InputDataConfig.ShuffleConfig.Seed", "Tags.Key"} <= set(PATHS)
    assert len(PATHS) > 100


TABLES = {
    "CreateTrainingJob": TRAINING_JOB,
    "CreateModel": HOSTED_MODEL,
    "CreateEndpointConfig": ENDPOINT_CONFIG,
    "CreateEndpoint": ENDPOINT,
    "UpdateEndpoint": ENDPOINT,
    "CreateTransformJob": TRANSFORM_JOB,
}


def paths_of(operation: str) -> list[str]:
    """Every member of its request."""
    return [".".join(path) for path, _ in leaves(MODEL.operation_model(operation).input_shape)]


@pytest.mark.parametrize("operation", TABLES)
def test_no_member_goes_unseen(operation: str) -> None:
    """A member that a new botocore brings fails here until somebody has decided what it means."""
    table: Members = TABLES[operation]
    for path in paths_of(operation):
        honoured, kept, refused = path in table.honoured, path in table.kept, bool(table.refused_by(path))
        assert honoured + kept + refused == 1, f"{path} must be honoured, kept or refused, and one of them"


def test_what_is_not_served_is_refused_by_name_and_reason() -> None:
    """Whatever else the request says; `false`, 0 and nothing ask for nothing."""
    base = request(InputDataConfig=[channel("train", "s3://b/t")])
    for path in set(PATHS) - SERVED:
        parts = tuple(path.split("."))
        shape = LEAVES[parts]
        leaf = [sample(shape)] if is_list(parts) else sample(shape)
        with pytest.raises(ValidationFailed) as error:
            TRAINING_JOB.check(merged(base, nested(parts, leaf)))
        text = str(error.value)
        known = TRAINING_JOB.refused_by(path)
        assert known.rpartition(".")[2] in text, path
        assert text.endswith(f"is not supported: {TRAINING_JOB.refused[known]}."), path
        empty: tuple[Any, ...] = (None, False, 0, "", [], {})
        for nothing in empty:
            TRAINING_JOB.check(merged(base, nested(parts, nothing)))


def test_the_tables_name_what_exists() -> None:
    """No entry outlives its member."""
    for operation, table in TABLES.items():
        paths = {path for other, of in TABLES.items() if of is table for path in paths_of(other)}
        assert paths >= table.honoured | frozenset(table.kept), operation
        for known in table.refused:
            assert any(path == known or path.startswith(f"{known}.") for path in paths), known


def test_describe_shows_what_was_served() -> None:
    """All that DescribeTrainingJob has a member for comes back as it was given."""
    response = MODEL.operation_model("DescribeTrainingJob").output_shape
    base = request(InputDataConfig=[channel("train", "s3://b/t")])
    for path in sorted(SERVED - {"RoleArn", "TrainingJobName"}):
        top, *rest = path.split(".")
        shape = response.members.get(top)
        for name in rest:
            while shape is not None and shape.type_name == "list":
                shape = shape.member
            shape = None if shape is None else shape.members.get(name)
        if shape is None:
            continue
        parts = tuple(path.split("."))
        leaf = [sample(LEAVES[parts])] if is_list(parts) else sample(LEAVES[parts])
        given = merged(base, nested(parts, leaf))
        shown = described(job(HOME, given))
        assert contains(shown.get(top), nested(parts, leaf)[top]), path


def contains(shown: Any, asked: Any) -> bool:
    """Whether all that is asked is shown, beside other things."""
    if isinstance(asked, dict):
        return isinstance(shown, dict) and all(contains(shown.get(k), v) for k, v in asked.items())
    if isinstance(asked, list) and asked and isinstance(asked[0], dict):
        return isinstance(shown, list) and bool(shown) and contains(shown[0], asked[0])
    return bool(shown == asked)


def test_what_no_table_knows_is_refused() -> None:
    """Before anybody has decided on it, and at any depth."""
    for unknown in (
        {"SomethingNew": {"A": [{"B": 1}]}},
        {"CheckpointConfig": {"S3Uri": "s3://b/c", "SomethingNew": True}},
        {"ResourceConfig": {"SomethingNew": "x"}},
    ):
        with pytest.raises(ValidationFailed, match=r"SomethingNew.* is not supported: this backend"):
            TRAINING_JOB.check({**request(), **unknown})
    dotted = channel("a.b", "s3://b/1")
    dotted["SomethingNew"] = 1
    with pytest.raises(ValidationFailed, match=r"^InputDataConfig\[a\.b\]\.SomethingNew is not"):
        TRAINING_JOB.check(request(InputDataConfig=[dotted]))
