import json
import time

import boto3

s3, sagemaker, runtime = boto3.client("s3"), boto3.client("sagemaker"), boto3.client("sagemaker-runtime")
name = f"from-boto3-{int(time.time())}"

s3.create_bucket(Bucket="my-models")
s3.upload_file("with-code.tar.gz", "my-models", "model.tar.gz")

sagemaker.create_model(
    ModelName=name,
    ExecutionRoleArn="arn:aws:iam::000000000000:role/MyRole",
    PrimaryContainer={
        "Image": "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-inference:2.6.0-cpu-py312-ubuntu22.04-sagemaker",
        "ModelDataUrl": "s3://my-models/model.tar.gz",
        "Environment": {
            "SAGEMAKER_PROGRAM": "inference.py",
            "SAGEMAKER_SUBMIT_DIRECTORY": "/opt/ml/model/code",
        },
    },
)
sagemaker.create_endpoint_config(
    EndpointConfigName=name,
    ProductionVariants=[
        {
            "VariantName": "AllTraffic",
            "ModelName": name,
            "InstanceType": "ml.c5.xlarge",
            "InitialInstanceCount": 1,
        }
    ],
)
sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=name, WaiterConfig={"Delay": 1})

answer = runtime.invoke_endpoint(
    EndpointName=name, ContentType="application/json", Body=json.dumps({"inputs": [[1, 2], [3, 4]]})
)
print(answer["InvokedProductionVariant"], json.load(answer["Body"]))

sagemaker.delete_endpoint(EndpointName=name)
sagemaker.get_waiter("endpoint_deleted").wait(EndpointName=name, WaiterConfig={"Delay": 1})
sagemaker.delete_endpoint_config(EndpointConfigName=name)
sagemaker.delete_model(ModelName=name)
