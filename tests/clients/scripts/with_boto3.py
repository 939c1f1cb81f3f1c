import io
import json
import tarfile
import time

import boto3

s3, sagemaker, logs = boto3.client("s3"), boto3.client("sagemaker"), boto3.client("logs")
account = boto3.client("sts").get_caller_identity()["Account"]
bucket, job = "my-bucket", f"from-boto3-{int(time.time())}"

s3.create_bucket(Bucket=bucket)
s3.put_object(Bucket=bucket, Key="train/samples.csv", Body=b"1,2\n3,4\n5,6\n")
code = io.BytesIO()
with tarfile.open(fileobj=code, mode="w:gz") as archive:
    archive.add("src/train.py", "train.py")
s3.put_object(Bucket=bucket, Key="code/sourcedir.tar.gz", Body=code.getvalue())

sagemaker.create_training_job(
    TrainingJobName=job,
    RoleArn=f"arn:aws:iam::{account}:role/MyRole",
    AlgorithmSpecification={
        "TrainingImage": "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training-neuronx:"
        "2.9.0-neuronx-py312-sdk2.29.0-ubuntu24.04",
        "TrainingInputMode": "File",
    },
    HyperParameters={
        "sagemaker_program": json.dumps("train.py"),
        "sagemaker_submit_directory": json.dumps(f"s3://{bucket}/code/sourcedir.tar.gz"),
        "epochs": "2",
    },
    InputDataConfig=[
        {
            "ChannelName": "train",
            "DataSource": {
                "S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{bucket}/train"},
            },
        }
    ],
    OutputDataConfig={"S3OutputPath": f"s3://{bucket}/output"},
    ResourceConfig={"InstanceType": "ml.trn1.2xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
    StoppingCondition={"MaxRuntimeInSeconds": 600},
)
waiter = sagemaker.get_waiter("training_job_completed_or_stopped")
waiter.wait(TrainingJobName=job, WaiterConfig={"Delay": 1})

group = "/aws/sagemaker/TrainingJobs"
for stream in logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=job)["logStreams"]:
    events = logs.get_log_events(
        logGroupName=group, logStreamName=stream["logStreamName"], startFromHead=True
    )
    print(*(event["message"] for event in events["events"]), sep="\n")

model = sagemaker.describe_training_job(TrainingJobName=job)["ModelArtifacts"]["S3ModelArtifacts"]
_, _, key = model.removeprefix("s3://").partition("/")
s3.download_file(bucket, key, "model.tar.gz")
print(job, "model.tar.gz holds", tarfile.open("model.tar.gz").getnames())
