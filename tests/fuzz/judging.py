"""What is wrong with an answer: everything that a client of AWS's could not make sense of."""

from __future__ import annotations

from typing import Any

from botocore.parsers import create_parser

from tests.fuzz.calls import Call
from tests.fuzz.wire import Answer


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# AWS's "Common errors", in the names of its JSON and its query protocols.
COMMON = _words(
    """AccessDenied AccessDeniedException ExpiredToken ExpiredTokenException IncompleteSignature
    IncompleteSignatureException InternalFailure InvalidAction InvalidClientTokenId InvalidParameterCombination
    InvalidParameterValue InvalidQueryParameter InvalidSignatureException MalformedHttpRequestException
    MalformedQueryString MissingAction MissingAuthenticationToken MissingAuthenticationTokenException
    MissingParameter NotAuthorized OptInRequired RequestAbortedException RequestEntityTooLargeException
    RequestExpired RequestTimeoutException SerializationException ServiceUnavailable SignatureDoesNotMatch
    ThrottlingException UnknownOperationException UnrecognizedClientException UnsupportedOperation
    UnsupportedProtocol ValidationError ValidationException"""
)
# Amazon S3's "List of error codes": its model names only a few.
S3 = _words(
    """AccessControlListNotSupported AccessDenied AuthorizationHeaderMalformed AuthorizationQueryParametersError
    BadDigest BadRequest BucketAlreadyExists BucketAlreadyOwnedByYou BucketNotEmpty ConditionalRequestConflict
    EntityTooLarge EntityTooSmall ExpiredToken IllegalLocationConstraintException IncompleteBody InternalError
    InvalidAccessKeyId InvalidArgument InvalidBucketName InvalidDigest InvalidEncryptionAlgorithmError
    InvalidLocationConstraint InvalidPart InvalidPartNumber InvalidPartOrder InvalidRange InvalidRequest
    InvalidStorageClass InvalidTag InvalidToken InvalidURI KeyTooLongError MalformedPOSTRequest
    MalformedTrailerError MalformedXML MaxMessageLengthExceeded MetadataTooLarge MethodNotAllowed
    MissingAttachment MissingContentLength MissingRequestBodyError MissingSecurityHeader NoSuchBucket
    NoSuchBucketPolicy NoSuchCORSConfiguration NoSuchKey NoSuchLifecycleConfiguration
    NoSuchPublicAccessBlockConfiguration NoSuchTagSet NoSuchUpload NoSuchVersion NoSuchWebsiteConfiguration
    NotImplemented NotSignedUp ObjectLockConfigurationNotFoundError OperationAborted
    OwnershipControlsNotFoundError PreconditionFailed ReplicationConfigurationNotFoundError
    RequestTimeTooSkewed RequestTimeout ServerSideEncryptionConfigurationNotFoundError ServiceUnavailable
    SignatureDoesNotMatch SlowDown UnexpectedContent UnsupportedSignature XAmzContentChecksumMismatch
    XAmzContentSHA256Mismatch"""
)
_PARSERS = {name: create_parser(name) for name in ("json", "query", "rest-xml", "smithy-rpc-v2-cbor")}
_TYPES = {"application/x-amz-json-1": "json", "application/cbor": "smithy-rpc-v2-cbor", "text/xml": "query"}


def is_server_error(call: Call, answer: Answer) -> bool:
    """Whether the server failed. S3's 501 NotImplemented is an answer, not a failure; to HEAD it has no body."""
    no_body = call.service == "s3" and call.message.method == "HEAD"
    said = no_body or b"<Code>NotImplemented</Code>" in answer.body
    return answer.status >= 500 and not (answer.status == 501 and said)


def objection(call: Call, answer: Answer, *, at_home: bool) -> str | None:
    """What is wrong with the shape of an answer; None if nothing is.

    ``at_home``: the request came in the protocol of its service, so the answer must be in it, and
    its code one that the service's model or AWS's documents know.
    """
    if answer.status == 0:
        return "closed without an answer"
    if any(name.startswith("access-control-") for name in answer.headers):
        return "has a CORS header"
    if call.message.method == "HEAD":  # no body, so no code
        return None
    protocol = call.protocol if at_home else _protocol_of(answer) or call.protocol
    try:
        parsed = _PARSERS[protocol].parse(
            {"headers": answer.headers, "status_code": answer.status, "body": answer.body},
            call.operation.output_shape if at_home else None,
        )
    except Exception as error:  # noqa: BLE001  the parser raises whatever it meets
        return f"cannot be parsed: {type(error).__name__} {error}"
    if answer.status < 300 or answer.status == 304:
        return None
    code = parsed.get("Error", {}).get("Code", "")
    if code not in _known(call, at_home=at_home):
        return f"has the error code {code!r}"
    if not parsed["Error"].get("Message"):
        return f"says nothing about {code}"
    return None


def code_of(call: Call, answer: Answer) -> str:
    """The error's code as botocore reads it, for counts."""
    if answer.status < 400:
        return str(answer.status)
    protocol = _protocol_of(answer) or call.protocol
    try:
        parsed = _PARSERS[protocol].parse(
            {"headers": answer.headers, "status_code": answer.status, "body": answer.body}, None
        )
    except Exception:  # noqa: BLE001  counted elsewhere
        return "unparsable"
    return str(parsed.get("Error", {}).get("Code"))


def _protocol_of(answer: Answer) -> str | None:
    kind = answer.headers.get("content-type", "")
    if kind == "application/xml":
        return "query" if b"<ErrorResponse" in answer.body else "rest-xml"
    return next((protocol for start, protocol in _TYPES.items() if kind.startswith(start)), None)


def _known(call: Call, *, at_home: bool) -> set[str]:
    model: Any = call.operation.service_model
    codes = {shape.error_code for shape in model.error_shapes} | {shape.name for shape in model.error_shapes}
    if call.service == "s3" or not at_home:
        codes |= S3
    if call.service != "s3" or not at_home:
        codes |= COMMON
    return codes
