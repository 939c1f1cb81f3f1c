"""CBOR bodies and query forms become the documents that JSON would have been, as botocore itself writes them."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from botocore.parsers import create_parser
from botocore.serialize import create_serializer
from hypothesis import given
from hypothesis import strategies as st

from windtunnel_local.api import cbor, codec, form
from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.validate import accepted

NAMES = st.from_regex(r"[a-zA-Z0-9_./#-]([a-zA-Z0-9_./#+&=%~ -]{0,18}[a-zA-Z0-9])?", fullmatch=True)
MOMENTS = st.integers(0, 4_000_000_000).map(lambda s: datetime.fromtimestamp(s, timezone.utc))
QUERY = st.fixed_dictionaries(
    {
        "Namespace": st.just("/aws/sagemaker/TrainingJobs"),
        "MetricName": NAMES,
        "StartTime": MOMENTS,
        "EndTime": MOMENTS,
        "Period": st.integers(1, 86_400),
    },
    optional={
        "Statistics": st.lists(st.sampled_from(["Average", "Sum", "Maximum"]), min_size=1, max_size=5),
        "Dimensions": st.lists(
            st.fixed_dictionaries({"Name": NAMES, "Value": NAMES}), min_size=1, max_size=3
        ),
    },
)


def written(protocol: str, operation: str, parameters: dict[str, Any], service: str = "monitoring") -> Any:
    """The request that botocore sends."""
    model = codec.operation(service, operation)
    return create_serializer(protocol, include_validation=False).serialize_to_request(parameters, model)


@given(QUERY)
def test_a_cbor_body_is_read_as_botocore_wrote_it(parameters: dict[str, Any]) -> None:
    """Every member arrives with its type, times to the second."""
    shape = codec.operation("monitoring", "GetMetricStatistics").input_shape  # type: ignore[union-attr]
    body = written("smithy-rpc-v2-cbor", "GetMetricStatistics", parameters)["body"]
    assert cbor.decoded(shape, body) == parameters


@given(QUERY)
def test_a_query_form_is_read_as_botocore_wrote_it(parameters: dict[str, Any]) -> None:
    """Lists, structures, numbers and times come out of flat names as they went in."""
    shape = codec.operation("monitoring", "GetMetricStatistics").input_shape  # type: ignore[union-attr]
    fields = {k: str(v) for k, v in written("query", "GetMetricStatistics", parameters)["body"].items()}
    del fields["Action"], fields["Version"]
    assert accepted(shape, form.document(shape, fields)) == parameters


@given(st.lists(NAMES.filter(str.strip), min_size=1, max_size=4))
def test_lists_of_text_in_a_form(names: list[str]) -> None:
    """SimulatePrincipalPolicy's lists keep their order beyond nine members, too."""
    many = names * 4
    given_ = {"PolicySourceArn": "arn:aws:iam::000000000000:role/any", "ActionNames": many}
    shape = codec.operation("iam", "SimulatePrincipalPolicy").input_shape  # type: ignore[union-attr]
    fields = dict(written("query", "SimulatePrincipalPolicy", given_, "iam")["body"])
    del fields["Action"], fields["Version"]
    assert form.document(shape, fields) == given_


@pytest.mark.parametrize(
    "body", [b"\xff", b"\x9f", b"\xa1\x01\x02", b"\xc2\x41\x01", b"\xd8\x1d\x00", b"\x81" * 2000]
)
def test_what_is_no_cbor_of_the_protocol_is_refused(body: bytes) -> None:
    """Broken bytes, keys that are no text, unknown tags and bottomless nesting: one clear error."""
    shape = codec.operation("monitoring", "ListMetrics").input_shape  # type: ignore[union-attr]
    with pytest.raises(ApiError) as refused:
        cbor.decoded(shape, body)
    assert refused.value.code == "SerializationException"


@given(st.lists(st.tuples(MOMENTS, st.floats(allow_nan=False, allow_infinity=False)), max_size=5))
def test_an_answer_in_cbor_is_read_by_botocore(points: list[tuple[datetime, float]]) -> None:
    """Times and values survive the way back."""
    shape = codec.operation("monitoring", "GetMetricStatistics").output_shape  # type: ignore[union-attr]
    answer = {"Label": "loss", "Datapoints": [{"Timestamp": t, "Average": v} for t, v in points]}
    body = cbor.encoded(shape, answer)
    headers = {"smithy-protocol": "rpc-v2-cbor"}
    parsed = create_parser("smithy-rpc-v2-cbor").parse(
        {"status_code": 200, "headers": headers, "body": body}, shape
    )
    assert parsed["Label"] == "loss"
    assert parsed["Datapoints"] == answer["Datapoints"]


@pytest.mark.parametrize("name", ["Dimensions.member.x.Name", "Dimensions.member.99999999999.Name"])
def test_a_form_with_positions_that_are_none_is_refused(name: str) -> None:
    """Not taken for the first member, not dropped."""
    shape = codec.operation("monitoring", "GetMetricStatistics").input_shape  # type: ignore[union-attr]
    with pytest.raises(ApiError):
        form.document(shape, {name: "a"})
