import json

from sagemaker.core.helper.session_helper import Session
from sagemaker.serve import ModelBuilder

session = Session()
builder = ModelBuilder(
    image_uri="763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-inference:2.6.0-cpu-py312-ubuntu22.04-sagemaker",
    s3_model_data_url=session.upload_data("with-code.tar.gz", session.default_bucket(), "models"),
    env_vars={"SAGEMAKER_PROGRAM": "inference.py"},
    role_arn="arn:aws:iam::000000000000:role/MyRole",
    instance_type="ml.c5.xlarge",
    sagemaker_session=session,
)
builder.build()
endpoint = builder.deploy(endpoint_name="from-v3")
answer = endpoint.invoke(body=json.dumps({"inputs": [[1, 2], [3, 4]]}), content_type="application/json")
print(json.loads(answer.body.read()))
endpoint.delete()
