"""DescribeTrainingJob's answer for a job that ran on AWS, as `aws sagemaker describe-training-job` prints it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

START = datetime(2023, 1, 1, 12, 0, 0, tzinfo=timezone.utc)
PHASES = (("Starting", -600), ("Downloading", 0), ("Training", 60), ("Uploading", 6000), ("Completed", 6033))
"""Each with the second in which it begins, counted from TrainingStartTime. 6,033 s: AWS's published job."""


def described(**replaced: Any) -> dict[str, Any]:
    """One ml.trn1.32xlarge, 6,033 billable seconds, 5,940 of them Training; keyword arguments replace members."""
    moments = [START + timedelta(seconds=second) for _, second in PHASES]
    return {
        "TrainingJobName": "bert-real",
        "TrainingJobArn": "arn:aws:sagemaker:us-east-1:123456789012:training-job/bert-real",
        "TrainingJobStatus": "Completed",
        "SecondaryStatus": "Completed",
        "ResourceConfig": {"InstanceType": "ml.trn1.32xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
        "TrainingTimeInSeconds": 6033,
        "BillableTimeInSeconds": 6033,
        "CreationTime": moments[0].isoformat(),
        "TrainingStartTime": START.isoformat(),
        "TrainingEndTime": moments[-1].isoformat(),
        "SecondaryStatusTransitions": [
            {
                "Status": name,
                "StatusMessage": "",
                "StartTime": begun.isoformat(),
                "EndTime": ended.isoformat(),
            }
            for (name, _), begun, ended in zip(PHASES, moments, [*moments[1:], moments[-1]], strict=True)
        ],
        **replaced,
    }
