"""Uses S3 from within the job, as on AWS: boto3, s3fs and datasets; then says what else it could reach."""

import contextlib
import json
import os
import socket
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import BotoCoreError, ClientError


def reaches(host: str, port: int) -> bool:
    """Whether anybody listens there."""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def gateway() -> str:
    """This machine, as the container's network knows it."""
    fields = Path("/proc/net/route").read_text().splitlines()[1].split()
    return socket.inet_ntoa(bytes.fromhex(fields[2])[::-1])


bucket = sys.argv[sys.argv.index("--bucket") + 1]
port = urlsplit(os.environ["AWS_ENDPOINT_URL"]).port or 0
assert not os.environ.get("AWS_PROFILE")
who = boto3.client("sts").get_caller_identity()["Arn"]
body = boto3.client("s3").get_object(Bucket=bucket, Key="in.csv")["Body"].read()
boto3.client("s3").put_object(Bucket=bucket, Key="out/boto3", Body=b"!" * (9 << 20))
chained = boto3.client("sts").assume_role(
    RoleArn=f"arn:aws:iam::{'0' * 12}:role/Other", RoleSessionName="chained"
)
found = {"who": who, "read": body.decode(), "gateway": reaches(gateway(), port)}
if "--s3fs" in sys.argv:
    import datasets
    import s3fs

    files = s3fs.S3FileSystem()
    with files.open(f"s3://{bucket}/out/s3fs", "wb") as file:
        file.write(files.cat(f"s3://{bucket}/in.csv"))
    loaded = datasets.load_dataset("csv", data_files=f"s3://{bucket}/in.csv")["train"]
    loaded.save_to_disk(f"s3://{bucket}/out/dataset")
    found["rows"] = datasets.load_from_disk(f"s3://{bucket}/out/dataset").num_rows
if "--wait" in sys.argv:
    print("waiting", flush=True)
    seen = False
    while not seen:
        time.sleep(0.2)
        with contextlib.suppress(BotoCoreError, ClientError):  # no server now, or no such object yet
            seen = bool(boto3.client("s3").head_object(Bucket=bucket, Key="go-on"))
print(f"FOUND {json.dumps(found)}")  # one write: the toolkit takes several for several lines
# What the test tries when the job has ended. A real script would be ill-advised to.
names = ("AccessKeyId", "SecretAccessKey", "SessionToken")
mine = [os.environ[f"AWS_{name}"] for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")]
Path(os.environ["SM_MODEL_DIR"], "keys.json").write_text(
    json.dumps([mine, [chained["Credentials"][name] for name in names]])
)
