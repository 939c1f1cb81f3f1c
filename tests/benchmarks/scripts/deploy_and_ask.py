"""The model of a folder deployed and asked by many clients, in SDK v2's local mode or here: the classes' names are the
same. Prints the seconds of deploy(), requests a second, and the SDK's version."""

import importlib.metadata
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sdk, folder, image, clients, seconds = sys.argv[1:]
if sdk == "sagemaker":
    from sagemaker.deserializers import JSONDeserializer
    from sagemaker.local import LocalSession
    from sagemaker.pytorch import PyTorchModel
    from sagemaker.serializers import JSONSerializer
else:
    from windtunnel import JSONDeserializer, JSONSerializer, LocalSession, PyTorchModel

QUESTION = {"inputs": [1, 2, 3]}


def ask(until):
    """How often one client was answered."""
    count = 0
    while time.perf_counter() < until:
        assert predictor.predict(QUESTION) == QUESTION
        count += 1
    return count


model = PyTorchModel(
    model_data=f"{folder}/model.tar.gz",
    role="MyRole",
    entry_point="inference.py",
    source_dir=f"{folder}/model/code",
    image_uri=image,
    framework_version="2.6",
    py_version="py312",
    sagemaker_session=LocalSession(),
)
began = time.perf_counter()
predictor = model.deploy(
    initial_instance_count=1,
    instance_type="local" if sdk == "sagemaker" else "ml.c5.xlarge",
    serializer=JSONSerializer(),
    deserializer=JSONDeserializer(),
)
deploy_s = time.perf_counter() - began
try:
    ask(time.perf_counter() + 0.1)
    began = time.perf_counter()
    with ThreadPoolExecutor(int(clients)) as pool:
        counts = list(pool.map(ask, [began + float(seconds)] * int(clients)))
    print("RESULT", deploy_s, sum(counts) / (time.perf_counter() - began), importlib.metadata.version(sdk))
finally:
    predictor.delete_model()
    predictor.delete_endpoint()
