"""What the object store refuses, beyond a missing bucket or key.

ObjectError (service.errors)
├── NoSuchBucket, NoSuchKey (service.errors)
├── InvalidBucketName    not a name that S3 would take
├── InvalidKey           empty, longer than 1,024 bytes, or not text
├── ObjectExists         a write that asked for "only if absent"
├── NoSuchUpload         no multipart upload of that id
├── InvalidPart          completion names a part that was not uploaded
└── PartTooSmall         a part other than the last is under 5 MiB
"""

from __future__ import annotations

from windtunnel_local.service.errors import ObjectError


class InvalidBucketName(ObjectError):
    """The bucket's name breaks S3's rules."""


class InvalidKey(ObjectError):
    """The key breaks S3's rules."""


class ObjectExists(ObjectError):
    """The key is taken, and the write asked for it to be free."""


class NoSuchUpload(ObjectError):
    """The multipart upload does not exist: never started, aborted or completed."""


class InvalidPart(ObjectError):
    """A part is missing, out of order, or has another ETag."""


class PartTooSmall(ObjectError):
    """Only the last part may be smaller than 5 MiB."""
