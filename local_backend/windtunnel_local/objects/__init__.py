"""The object store behind S3's API: buckets and objects as files."""

from windtunnel_local.objects.files import FileObjects
from windtunnel_local.objects.uploads import MultipartUploads

__all__ = ["FileObjects", "MultipartUploads"]
