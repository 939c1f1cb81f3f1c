"""boto3 behind the seam: errors in our words, pages joined, and a backend that moved is found again."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError
from botocore.response import StreamingBody

from windtunnel.errors import BackendError, JobNotFound, ServiceCallFailed
from windtunnel.session.boto3_training import BotoService

Answer = Callable[[Mapping[str, Any]], Any]


class Meta:
    """client.meta."""

    region_name = "eu-west-1"


class Client:
    """A client whose methods take their next answer from the table of the session."""

    meta = Meta()

    def __init__(self, session: Session) -> None:
        self.session = session

    def close(self) -> None:
        """Count."""
        self.session.closed += 1

    def __getattr__(self, method: str) -> Any:
        def call(**members: Any) -> Any:
            self.session.calls.append((method, members))
            answer = self.session.answers[method].pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


class Session:
    """Stands for boto3.Session: makes clients, holds the answers."""

    def __init__(self, **answers: list[Any]) -> None:
        self.answers = answers
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.connections = 0
        self.closed = 0

    def client(self, _: str) -> Client:
        """A new client."""
        return Client(self)

    def connect(self) -> tuple[Any, Mapping[str, Any]]:
        """What BotoService asks before its first client."""
        self.connections += 1
        return self, {}


def refused(operation: str, code: str, message: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


def service(session: Session, *, local: bool = True) -> BotoService:
    return BotoService(session.connect, local=local)


def lost() -> EndpointConnectionError:
    return EndpointConnectionError(endpoint_url="http://127.0.0.1:1")


def test_refusals_have_operation_and_code() -> None:
    """A refused call says what was refused, with AWS's code and words."""
    session = Session(create_training_job=[refused("CreateTrainingJob", "ResourceInUse", "name taken")])
    with pytest.raises(ServiceCallFailed, match=r"CreateTrainingJob was refused \(ResourceInUse\): name"):
        service(session).create_job({"TrainingJobName": "j"})


@pytest.mark.parametrize(
    ("local", "said"),
    [
        (True, "on the local backend. `windtunnel ps` lists"),
        (False, "in this account and region. `windtunnel ps --aws` lists"),
    ],
)
def test_missing_job(local: bool, said: str) -> None:
    """AWS's ValidationException for a missing job becomes JobNotFound; the command named lists jobs of that place."""
    answer = refused("DescribeTrainingJob", "ValidationException", "Requested resource not found.")
    with pytest.raises(JobNotFound, match=re.escape(f"No training job 'j' {said}")):
        service(Session(describe_training_job=[answer]), local=local).describe_job("j")


def test_what_is_no_name_of_a_job_is_no_job() -> None:
    """The service answers that with its own pattern of names."""
    answer = refused(
        "DescribeTrainingJob", "ValidationException", "1 validation error detected: Value 'a.b' ..."
    )
    with pytest.raises(
        JobNotFound, match=r"No training job 'a\.b' .*: a name has up to 63 letters, digits and"
    ):
        service(Session(describe_training_job=[answer])).describe_job("a.b")


def test_a_restarted_backend_is_found_again() -> None:
    """The connection is made anew, once, and the call repeated."""
    session = Session(describe_training_job=[lost(), {"TrainingJobStatus": "InProgress"}])
    assert service(session).describe_job("j") == {"TrainingJobStatus": "InProgress"}
    assert (session.connections, session.closed) == (2, 1)


def test_a_backend_that_stays_away() -> None:
    """After one more try it is an error of ours."""
    session = Session(describe_training_job=[lost(), lost()])
    with pytest.raises(BackendError, match="does not answer"):
        service(session).describe_job("j")


def test_a_job_is_never_created_twice() -> None:
    """When the answer to CreateTrainingJob is lost, it may have been accepted: it is not sent again."""
    closed = ConnectionClosedError(endpoint_url="http://127.0.0.1:1")
    session = Session(create_training_job=[closed, {}])
    with pytest.raises(BackendError):
        service(session).create_job({"TrainingJobName": "j"})
    assert len(session.calls) == 1


def test_aws_is_not_reconnected() -> None:
    """On AWS botocore's own retries are enough."""
    session = Session(describe_training_job=[lost(), {}])
    with pytest.raises(ServiceCallFailed, match="EndpointConnectionError"):
        service(session, local=False).describe_job("j")
    assert session.connections == 1


def test_an_upload_starts_over() -> None:
    """A body that was half read when the connection broke is sent whole."""

    class Reading(Client):
        def __getattr__(self, method: str) -> Any:
            def call(**members: Any) -> Any:
                bodies.append(members["Body"].read())
                if len(bodies) == 1:
                    raise lost()

            return call

    class Half(Session):
        def client(self, _: str) -> Client:
            return Reading(self)

    bodies: list[bytes] = []
    service(Half()).put_file("b", "k", io.BytesIO(b"data"), None, encrypt=True)
    assert bodies == [b"data", b"data"]


def test_uploads_are_encrypted_as_v2_does() -> None:
    """Source code: aws:kms, with the key if one is given; data: as the bucket does."""
    session = Session(put_object=[{}, {}, {}])
    it = service(session)
    it.put_file("b", "k", io.BytesIO(b"x"), "key", encrypt=True)
    it.put_file("b", "k", io.BytesIO(b"x"), None, encrypt=True)
    it.put_file("b", "k", io.BytesIO(b"x"), None, encrypt=False)
    assert [(call.get("ServerSideEncryption"), call.get("SSEKMSKeyId")) for _, call in session.calls] == [
        ("aws:kms", "key"),
        ("aws:kms", None),
        (None, None),
    ]


def test_pages_are_joined() -> None:
    """Jobs, streams and keys over several pages; no log group yet means no streams."""
    session = Session(
        list_training_jobs=[
            {"TrainingJobSummaries": [{"n": 1}], "NextToken": "t"},
            {"TrainingJobSummaries": [{"n": 2}]},
        ],
        describe_log_streams=[
            {"logStreams": [{"logStreamName": "j/algo-2"}], "nextToken": "t"},
            {"logStreams": [{"logStreamName": "j/algo-1"}]},
            refused("DescribeLogStreams", "ResourceNotFoundException", "no group"),
        ],
        list_objects_v2=[
            {"Contents": [{"Key": "a"}], "IsTruncated": True, "NextContinuationToken": "t"},
            {"IsTruncated": False},
        ],
    )
    it = service(session)
    assert it.list_jobs(5, "Failed") == [{"n": 1}, {"n": 2}]
    assert {call["StatusEquals"] for _, call in session.calls} == {"Failed"}
    assert it.log_streams("j") == ["j/algo-1", "j/algo-2"]
    assert it.log_streams("j") == []
    assert it.list_objects("b", "") == ["a"]


def test_bucket_is_made_where_the_session_is() -> None:
    """Missing: created with the region's constraint. Any other refusal is said."""
    missing = refused("HeadBucket", "404", "Not Found")
    session = Session(head_bucket=[missing, refused("HeadBucket", "403", "Forbidden")], create_bucket=[{}])
    service(session).ensure_bucket("b")
    assert session.calls[-1] == (
        "create_bucket",
        {"Bucket": "b", "CreateBucketConfiguration": {"LocationConstraint": "eu-west-1"}},
    )
    with pytest.raises(ServiceCallFailed, match="403"):
        service(session).ensure_bucket("b")


@pytest.mark.parametrize("code", ["BucketAlreadyOwnedByYou", "OperationAborted"])
def test_a_bucket_that_another_process_makes_meanwhile(code: str) -> None:
    """Two jobs that are started at once in a new account both start; a name that is another account's is refused."""
    missing = [refused("HeadBucket", "404", "Not Found")] * 2
    taken = [
        refused("CreateBucket", code, "now"),
        refused("CreateBucket", "BucketAlreadyExists", "not yours"),
    ]
    it = service(Session(head_bucket=missing, create_bucket=taken), local=False)
    it.ensure_bucket("b")
    with pytest.raises(ServiceCallFailed, match="not yours"):
        it.ensure_bucket("b")


def test_missing_object() -> None:
    """No object is no error: the caller knows what its absence means."""
    session = Session(get_object=[refused("GetObject", "NoSuchKey", "no")])
    assert service(session).get_object("b", "k", io.BytesIO()) is False


def test_an_object_that_breaks_off() -> None:
    """Half of it is no object: an error of ours, as of every other call."""
    cut = StreamingBody(io.BytesIO(b"half"), content_length=8)
    with pytest.raises(ServiceCallFailed, match=r"GetObject was refused \(IncompleteReadError\)"):
        service(Session(get_object=[{"Body": cut}])).get_object("b", "k", io.BytesIO())


def test_log_events() -> None:
    """From the head, with the token that continues; the first call has none."""
    page = {"events": [{"timestamp": 1, "message": "x"}], "nextForwardToken": "f/1"}
    session = Session(get_log_events=[page, page])
    lines, token = service(session).read_log("j/algo-1", None)
    assert ([line.text for line in lines], token) == (["x"], "f/1")
    service(session).read_log("j/algo-1", token)
    assert "nextToken" not in session.calls[0][1]
    assert session.calls[1][1]["nextToken"] == "f/1"
    assert session.calls[1][1]["startFromHead"] is True
