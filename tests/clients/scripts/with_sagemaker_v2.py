from sagemaker import Session, TrainingJobAnalytics
from sagemaker.pytorch import PyTorch

session = Session()
estimator = PyTorch(
    entry_point="train.py",
    source_dir="src",
    role="MyRole",
    image_uri="763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training-neuronx:"
    "2.9.0-neuronx-py312-sdk2.29.0-ubuntu24.04",
    instance_type="ml.trn1.2xlarge",
    instance_count=1,
    distribution={"torch_distributed": {"enabled": True}},
    hyperparameters={"epochs": 2},
    metric_definitions=[{"Name": "loss", "Regex": r"\bloss=([0-9.]+)"}],
    sagemaker_session=session,
)
estimator.fit({"train": session.upload_data("data", key_prefix="train")})

attached = PyTorch.attach(estimator.latest_training_job.name, sagemaker_session=session)
print(attached.model_data)
bucket, _, key = attached.model_data.removeprefix("s3://").partition("/")
session.download_data(".", bucket, key)
print(TrainingJobAnalytics(attached.latest_training_job.name, ["loss"]).dataframe())
