"""The errors of the object store, except for a missing bucket or key.

ObjectError (service.ground.errors)
├── NoSuchBucket, NoSuchKey (service.ground.errors)
├── InvalidBucketName    S3 does not allow the name
├── BucketNotEmpty       the bucket to delete still has objects
├── InvalidKey           empty, longer than 1,024 bytes, or not text
├── ConditionFailed      a conditional write (only if the key is absent, or has this ETag) does not apply
├── NoSuchUpload         there is no multipart upload of that id
├── InvalidPart          the completion names a part that was not uploaded, or was with another checksum
├── InvalidPartNumber    a part's number is not 1 to 10,000
├── InvalidPartOrder     the completion's parts are not in ascending order
└── PartTooSmall         a part other than the last is under 5 MiB
"""

from __future__ import annotations

from windtunnel_local.service.ground.errors import ObjectError


class InvalidBucketName(ObjectError):
    """The bucket's name breaks S3's rules."""


class BucketNotEmpty(ObjectError):
    """The bucket has objects."""


class InvalidKey(ObjectError):
    """The key breaks S3's rules."""


class ConditionFailed(ObjectError):
    """The condition of a write does not hold. ``details``: the condition, by S3's name."""

    def __init__(self, message: str, condition: str | None = None) -> None:
        super().__init__(message)
        self.details = {"Condition": condition} if condition else {}


class NoSuchUpload(ObjectError):
    """The multipart upload does not exist: never started, aborted or completed."""


class InvalidPart(ObjectError):
    """A part is missing, or has another ETag or checksum."""


class InvalidPartNumber(ObjectError):
    """A part's number is out of S3's range."""


class InvalidPartOrder(ObjectError):
    """A completion's parts are not in ascending order."""


class PartTooSmall(ObjectError):
    """Only the last part may be smaller than 5 MiB."""
