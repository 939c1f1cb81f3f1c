"""S3's operations on buckets: the few that do something, and the many whose answer is "not configured"."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from windtunnel_local.api import xmlcodec
from windtunnel_local.api.body import VerifiedReader
from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.s3_answer import NAMESPACE, Answer, Handler
from windtunnel_local.api.s3_body import read_document
from windtunnel_local.api.s3_headers import no_acls
from windtunnel_local.api.s3_routes import Call
from windtunnel_local.objects import buckets
from windtunnel_local.objects.files import FileObjects

_DEFAULT_REGION = "us-east-1"
_OLD_NAMES = {"EU": "eu-west-1"}
_MOST_BUCKETS = 10_000
_EACH_IS = {"ObjectOwnership": "BucketOwnerEnforced", "BucketNamespace": "global"}
"""Values that CreateBucket accepts, because each bucket has them anyway."""

# AWS's errors about settings that a bucket does not have: here they cannot be set.
_ABSENT: Mapping[str, tuple[str, str]] = {
    "GetBucketCors": ("NoSuchCORSConfiguration", "The CORS configuration does not exist"),
    "GetBucketLifecycleConfiguration": (
        "NoSuchLifecycleConfiguration",
        "The lifecycle configuration does not exist",
    ),
    "GetBucketPolicy": ("NoSuchBucketPolicy", "The bucket policy does not exist"),
    "GetBucketPolicyStatus": ("NoSuchBucketPolicy", "The bucket policy does not exist"),
    "GetBucketReplication": (
        "ReplicationConfigurationNotFoundError",
        "The replication configuration was not found",
    ),
    "GetBucketTagging": ("NoSuchTagSet", "The TagSet does not exist"),
    "GetBucketWebsite": (
        "NoSuchWebsiteConfiguration",
        "The specified bucket does not have a website configuration",
    ),
    "GetObjectLockConfiguration": (
        "ObjectLockConfigurationNotFoundError",
        "Object Lock configuration does not exist for this bucket",
    ),
}
# The settings of a new bucket, as on AWS since 2023: no ACLs, nothing public, encrypted with S3's own keys.
_NEW: Mapping[str, Mapping[str, object]] = {
    "GetBucketEncryption": {
        "ServerSideEncryptionConfiguration": {
            "Rules": [
                {
                    "ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"},
                    "BucketKeyEnabled": False,
                }
            ]
        }
    },
    "GetBucketOwnershipControls": {
        "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    },
    "GetPublicAccessBlock": {
        "PublicAccessBlockConfiguration": {
            "BlockPublicAcls": True,
            "IgnorePublicAcls": True,
            "BlockPublicPolicy": True,
            "RestrictPublicBuckets": True,
        }
    },
    "GetBucketRequestPayment": {"Payer": "BucketOwner"},
    "GetBucketAccelerateConfiguration": {},
    "GetBucketLogging": {},
    "GetBucketNotificationConfiguration": {},
    "GetBucketVersioning": {},
}
# Operations that are accepted if they set what each bucket has: the operation that reads it, and AWS's defaults.
_SAYABLE: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "PutBucketEncryption": ("GetBucketEncryption", {"BucketKeyEnabled": False}),
    "PutBucketOwnershipControls": ("GetBucketOwnershipControls", {}),
    "PutPublicAccessBlock": ("GetPublicAccessBlock", {}),
}


class BucketOperations:
    """Operations on buckets. ``handlers``: by the operation's name."""

    def __init__(self, objects: FileObjects, owner: Mapping[str, str], region: str) -> None:
        self._objects = objects
        self._region = region
        self._owner = owner
        self.handlers: Mapping[str, Handler] = {
            "ListBuckets": self._list,
            "CreateBucket": self._create,
            "DeleteBucket": self._delete,
            "HeadBucket": self._head,
            "GetBucketLocation": self._location,
            "GetBucketAcl": self._acl,
            "GetObjectAcl": self._acl,
            **dict.fromkeys(_ABSENT, self._absent),
            **dict.fromkeys(_NEW, self._as_made),
            **dict.fromkeys(_SAYABLE, self._said),
            "PutBucketAcl": self._no_acl,
            "PutObjectAcl": self._no_acl,
        }

    def _list(self, call: Call, _body: VerifiedReader) -> Answer:
        """ListBuckets, sorted by name. The token of the next page is the last name of this page."""
        prefix, after = call.params.get("Prefix", ""), call.params.get("ContinuationToken", "")
        most = _most_buckets(call.params.get("MaxBuckets"))
        asked = call.params.get("BucketRegion")
        found = [
            {"Name": bucket.name, "CreationDate": bucket.created, "BucketRegion": region}
            for bucket in sorted(self._objects.buckets(), key=lambda bucket: bucket.name)
            if bucket.name.startswith(prefix) and bucket.name > after
            if (region := self._region_of(bucket.place)) == (asked or region)
        ]
        page = found[:most]
        token = page[-1]["Name"] if len(found) > len(page) else None
        return Answer(
            {"Buckets": page, "Owner": self._owner, "Prefix": prefix or None, "ContinuationToken": token}
        )

    def _create(self, call: Call, body: VerifiedReader) -> Answer:
        said = _configuration(call, read_document(body))
        _check_served(call, said)
        _check_place(call, said.get("LocationConstraint"))
        name = call.params["Bucket"]
        if _is_elsewhere(call) and self._objects.has_bucket(name):
            message = "Your previous request to create the named bucket succeeded and you already own it."
            raise ApiError("BucketAlreadyOwnedByYou", message, 409, {"BucketName": name})
        self._objects.create_bucket(name, said.get("LocationConstraint", ""))
        return Answer({"Location": f"/{call.params['Bucket']}"})

    def _delete(self, call: Call, _body: VerifiedReader) -> Answer:
        self._objects.delete_bucket(call.params["Bucket"])
        return Answer()

    def _head(self, call: Call, _body: VerifiedReader) -> Answer:
        place = buckets.place(self._objects.folder(call.params["Bucket"]))
        return Answer({"BucketRegion": self._region_of(place)})

    def _location(self, call: Call, _body: VerifiedReader) -> Answer:
        place = buckets.place(self._objects.folder(call.params["Bucket"])) or self._region
        text = "" if place == _DEFAULT_REGION else xmlcodec.text(place)
        root = f'<LocationConstraint xmlns="{NAMESPACE}">{text}</LocationConstraint>'
        return Answer(content=(xmlcodec.DECLARATION + root).encode())

    def _region_of(self, place: str) -> str:
        return _OLD_NAMES.get(place, place) or self._region

    def _acl(self, call: Call, _body: VerifiedReader) -> Answer:
        """The ACL of a bucket or object: full control for the one account, and nothing for others."""
        if "Key" in call.params:
            self._objects.existing(call.params["Bucket"], call.params["Key"])
        else:
            self._objects.folder(call.params["Bucket"])
        owner = "".join(f"<{name}>{xmlcodec.text(value)}</{name}>" for name, value in self._owner.items())
        # Written by hand, as the grantee's type is an XML attribute, which `xmlcodec` cannot write.
        document = (
            f'<AccessControlPolicy xmlns="{NAMESPACE}"><Owner>{owner}</Owner><AccessControlList><Grant>'
            '<Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="CanonicalUser">'
            f"{owner}</Grantee><Permission>FULL_CONTROL</Permission></Grant></AccessControlList>"
            "</AccessControlPolicy>"
        )
        return Answer(content=(xmlcodec.DECLARATION + document).encode())

    def _absent(self, call: Call, _body: VerifiedReader) -> Answer:
        self._objects.folder(call.params["Bucket"])
        code, message = _ABSENT[call.operation]
        raise ApiError(code, message, 404, {"BucketName": call.params["Bucket"]})

    def _as_made(self, call: Call, _body: VerifiedReader) -> Answer:
        self._objects.folder(call.params["Bucket"])
        return Answer(_NEW[call.operation])

    def _said(self, call: Call, body: VerifiedReader) -> Answer:
        """Accept a setting if each bucket has it anyway: here a bucket's settings cannot be changed."""
        document = read_document(body)
        self._objects.folder(call.params["Bucket"])
        answer, left_out = _SAYABLE[call.operation]
        ((name, state),) = _NEW[answer].items()
        said = xmlcodec.parsed(call.model.input_shape.members[name], document)
        if "Rules" in said:
            said = {"Rules": [{**left_out, **rule} for rule in said["Rules"]]}
        if said != state:
            raise ApiError(
                "NotImplemented",
                f"Windtunnel's S3 serves {call.operation} only where it says what each bucket here is: {state}.",
                501,
            )
        return Answer()

    def _no_acl(self, call: Call, body: VerifiedReader) -> Answer:
        read_document(body)  # to verify it
        self._objects.folder(call.params["Bucket"])
        raise no_acls()


def _configuration(call: Call, document: bytes) -> Mapping[str, Any]:
    shape = call.model.input_shape.members["CreateBucketConfiguration"]
    return xmlcodec.parsed(shape, document) if document else {}


def _check_served(call: Call, said: Mapping[str, Any]) -> None:
    """Raise ``ApiError`` for members of the request that would have no effect."""
    unserved = [f"CreateBucketConfiguration.{name}" for name in said if name != "LocationConstraint"]
    unserved += [
        f"{name}={call.params[name][:50]!r}"
        for name, each_is in _EACH_IS.items()
        if call.params.get(name, each_is) != each_is
    ]
    if unserved:
        raise ApiError(
            "NotImplemented",
            f"Windtunnel's S3 does not serve CreateBucket with {', '.join(unserved)}. Each bucket here has no tags, its"
            " objects are its owner's (ObjectOwnership BucketOwnerEnforced), and its name is for all (BucketNamespace"
            " global).",
            501,
        )


def _check_place(call: Call, region: str | None) -> None:
    """Check a new bucket's region. Raises ``ApiError``.

    Any region of botocore's model is accepted, as all buckets are here; none means us-east-1. As on AWS, the endpoint
    of us-east-1 creates buckets in any region. Other endpoints create only buckets of their own region, which must be
    given.
    """
    if region is not None and region not in _regions(call):
        raise ApiError(
            "InvalidLocationConstraint",
            "The specified location-constraint is not valid",
            details={"LocationConstraint": str(region)},
        )
    if _is_elsewhere(call) and _OLD_NAMES.get(region or "", region) != call.region:
        raise ApiError(
            "IllegalLocationConstraintException",
            f"The {region or 'unspecified'} location constraint is incompatible for the region specific endpoint this "
            "request was sent to.",
        )


def _is_elsewhere(call: Call) -> bool:
    """Whether the request is signed for a region other than us-east-1."""
    return call.region in _regions(call)


def _regions(call: Call) -> Collection[str]:
    names: Collection[str] = (
        call.model.input_shape.members["CreateBucketConfiguration"].members["LocationConstraint"].enum
    )
    return names


def _most_buckets(given: int | None) -> int:
    """The most buckets of a page. Raises ``ApiError``."""
    if given is not None and not 1 <= given <= _MOST_BUCKETS:
        raise ApiError("InvalidArgument", f"MaxBuckets must be 1 to {_MOST_BUCKETS}, not {given}.")
    return given or _MOST_BUCKETS
