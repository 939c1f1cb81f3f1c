"""Handlers of an endpoint that do what the request says."""

import json
import os
import subprocess
import time
from pathlib import Path


def model_fn(model_dir):
    """The first worker has its model at once, the others when the folder has a file `gate`."""
    try:
        Path(model_dir, "first").touch(exist_ok=False)
    except FileExistsError:
        until(Path(model_dir, "gate"))
    return {"model_dir": model_dir}


def input_fn(body, content_type):
    if content_type == "application/octet-stream":
        return {"length": len(body)}
    if content_type != "application/json":
        raise ValueError(f"{content_type} is not for me")
    return json.loads(body)


def predict_fn(data, model, context):
    if "touch" in data:
        Path(data["touch"]).touch()
    if "until" in data:
        until(Path(data["until"]))
    if "raise" in data:
        raise RuntimeError(data["raise"])
    if "exit" in data:
        os._exit(data["exit"])
    if "hang" in data:
        with open(data["hang"], "w") as file:
            file.write(str(subprocess.Popen(["sleep", "1000"]).pid))
        time.sleep(1000)
    attributes = context.get_request_header(0, "X-Amzn-SageMaker-Custom-Attributes")
    return {**data, **model, "pid": os.getpid(), "attributes": attributes}


def output_fn(prediction, accept, context):
    context.set_response_header(0, "X-Amzn-SageMaker-Custom-Attributes", "from the handler")
    return object() if "object" in prediction else json.dumps(prediction)


def until(path):
    while not path.exists():
        time.sleep(0.01)
