"""S3's operations on buckets: the few that do something, and the many whose answer is "not configured"."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from windtunnel_local.api import xmlcodec
from windtunnel_local.api.body import VerifiedReader
from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.s3_answer import NAMESPACE, Answer
from windtunnel_local.api.s3_routes import Call
from windtunnel_local.objects.files import FileObjects

_DEFAULT_REGION = "us-east-1"

# What AWS answers about a bucket where nothing of the kind was set: nothing can be set here.
_ABSENT: Mapping[str, tuple[str, str]] = {
    "GetBucketCors": ("NoSuchCORSConfiguration", "The CORS configuration does not exist"),
    "GetBucketEncryption": (
        "ServerSideEncryptionConfigurationNotFoundError",
        "The server side encryption configuration was not found",
    ),
    "GetBucketLifecycle": ("NoSuchLifecycleConfiguration", "The lifecycle configuration does not exist"),
    "GetBucketLifecycleConfiguration": (
        "NoSuchLifecycleConfiguration",
        "The lifecycle configuration does not exist",
    ),
    "GetBucketOwnershipControls": (
        "OwnershipControlsNotFoundError",
        "The bucket ownership controls were not found",
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
    "GetPublicAccessBlock": (
        "NoSuchPublicAccessBlockConfiguration",
        "The public access block configuration was not found",
    ),
}
_EMPTY = (
    "GetBucketAccelerateConfiguration",
    "GetBucketLogging",
    "GetBucketNotificationConfiguration",
    "GetBucketVersioning",
)


class BucketOperations:
    """Operations on buckets. ``handlers``: by the operation's name."""

    def __init__(self, objects: FileObjects, account_id: str, region: str) -> None:
        """Serve the store as the account's."""
        self._objects = objects
        self._region = region
        self._owner = {"DisplayName": "windtunnel", "ID": account_id}
        self.handlers: Mapping[str, Callable[[Call, VerifiedReader], Answer]] = {
            "ListBuckets": self._list,
            "CreateBucket": self._create,
            "DeleteBucket": self._delete,
            "HeadBucket": self._head,
            "GetBucketLocation": self._location,
            "GetBucketAcl": self._acl,
            "GetObjectAcl": self._acl,
            "GetBucketRequestPayment": self._payment,
            **dict.fromkeys(_ABSENT, self._absent),
            **dict.fromkeys(_EMPTY, self._empty),
        }

    def _list(self, call: Call, _body: VerifiedReader) -> Answer:
        prefix = call.params.get("Prefix", "")
        buckets = [
            {"Name": bucket.name, "CreationDate": bucket.created}
            for bucket in self._objects.buckets()
            if bucket.name.startswith(prefix)
        ]
        return Answer({"Buckets": buckets, "Owner": self._owner, "Prefix": prefix or None})

    def _create(self, call: Call, _body: VerifiedReader) -> Answer:
        self._objects.create_bucket(call.params["Bucket"])
        return Answer({"Location": f"/{call.params['Bucket']}"})

    def _delete(self, call: Call, _body: VerifiedReader) -> Answer:
        self._objects.delete_bucket(call.params["Bucket"])
        return Answer()

    def _head(self, call: Call, _body: VerifiedReader) -> Answer:
        self._objects.folder(call.params["Bucket"])
        return Answer({"BucketRegion": self._region})

    def _location(self, call: Call, _body: VerifiedReader) -> Answer:
        self._objects.folder(call.params["Bucket"])
        region = "" if self._region == _DEFAULT_REGION else xmlcodec.text(self._region)
        root = f'<LocationConstraint xmlns="{NAMESPACE}">{region}</LocationConstraint>'
        return Answer(content=(xmlcodec.DECLARATION + root).encode())

    def _acl(self, call: Call, _body: VerifiedReader) -> Answer:
        """The one account may do everything, and nobody else anything."""
        if "Key" in call.params:
            self._objects.existing(call.params["Bucket"], call.params["Key"])
        else:
            self._objects.folder(call.params["Bucket"])
        owner = "".join(f"<{name}>{xmlcodec.text(value)}</{name}>" for name, value in self._owner.items())
        # By hand: the grantee's type is an attribute, which no shape of the model writes.
        document = (
            f'<AccessControlPolicy xmlns="{NAMESPACE}"><Owner>{owner}</Owner><AccessControlList><Grant>'
            '<Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="CanonicalUser">'
            f"{owner}</Grantee><Permission>FULL_CONTROL</Permission></Grant></AccessControlList>"
            "</AccessControlPolicy>"
        )
        return Answer(content=(xmlcodec.DECLARATION + document).encode())

    def _payment(self, call: Call, _body: VerifiedReader) -> Answer:
        self._objects.folder(call.params["Bucket"])
        return Answer({"Payer": "BucketOwner"})

    def _absent(self, call: Call, _body: VerifiedReader) -> Answer:
        self._objects.folder(call.params["Bucket"])
        code, message = _ABSENT[call.operation]
        raise ApiError(code, message, 404, {"BucketName": call.params["Bucket"]})

    def _empty(self, call: Call, _body: VerifiedReader) -> Answer:
        self._objects.folder(call.params["Bucket"])
        return Answer()
