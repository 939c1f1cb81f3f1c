"""The CreateTrainingJob request as frozen data, and what must be in S3 before it is sent.

`build.build_request` makes it, `Session.submit` sends it: the same request to the local server and to AWS.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.request.inputs import split_s3
from windtunnel.request.source_archive import SourceTree, packed

if TYPE_CHECKING:
    from windtunnel.budget.budget import Budget


@dataclass(frozen=True)
class SourceUpload:
    """Pack ``tree`` and store it at ``s3://bucket/key``."""

    tree: SourceTree
    bucket: str
    key: str
    kms_key_id: str | None = None


@dataclass(frozen=True)
class PathUpload:
    """Store a file or all files below a directory under ``s3://bucket/prefix/``."""

    path: Path
    bucket: str
    prefix: str


Upload = SourceUpload | PathUpload


@dataclass(frozen=True)
class Target:
    """The place a job is sent to, as far as the request depends on it."""

    region: str
    bucket: str
    """The session's default bucket."""
    role_arn: str
    local: bool
    """True for the local backend, which reads ``file://`` channels in place; for AWS they are uploaded."""


@dataclass(frozen=True)
class TrainingRequest:
    """CreateTrainingJob's members, and the uploads that come first. Shown by ``repr`` as JSON."""

    parameters: Mapping[str, Any]
    uploads: tuple[Upload, ...] = field(default=())
    budget: Budget | None = None
    """The budget made of ``max_cost``; None without ``max_cost``."""

    @property
    def name(self) -> str:
        """The job's name."""
        return str(self.parameters["TrainingJobName"])

    def buckets(self) -> frozenset[str]:
        """The buckets that the uploads and the job itself write to."""
        found = {upload.bucket for upload in self.uploads}
        written = [self.parameters["OutputDataConfig"]["S3OutputPath"]]
        for member, place in (("CheckpointConfig", "S3Uri"), ("TensorBoardOutputConfig", "S3OutputPath")):
            if config := self.parameters.get(member):
                written.append(config[place])
        return frozenset(found | {split_s3(str(uri))[0] for uri in written})

    def try_packing(self) -> None:
        """Check that the code can be packed: pack it as for an upload, and discard it. Blocks.

        Raises:
            SourceError: a file that cannot be packed.
        """
        for upload in self.uploads:
            if isinstance(upload, SourceUpload):
                with packed(upload.tree):
                    pass

    def to_dict(self) -> dict[str, Any]:
        """A copy of the request, as ``boto3.client("sagemaker").create_training_job(**...)`` takes it.

        Make the `uploads` before you send it; ``fit`` does both.
        """
        return copy.deepcopy(dict(self.parameters))

    def __repr__(self) -> str:
        """The request as JSON, then a line for each upload, then the budget."""
        lines = [json.dumps(self.parameters, indent=2, sort_keys=True)]
        for upload in self.uploads:
            if isinstance(upload, SourceUpload):
                lines.append(
                    f"upload: source code of {upload.tree.script} -> s3://{upload.bucket}/{upload.key}"
                )
            else:
                lines.append(f"upload: {upload.path} -> s3://{upload.bucket}/{upload.prefix}/")
        if self.budget is not None:
            lines += self.budget.lines()
        return "\n".join(lines)
