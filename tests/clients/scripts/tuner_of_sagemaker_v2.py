from sagemaker import Session
from sagemaker.pytorch import PyTorch
from sagemaker.tuner import ContinuousParameter, HyperparameterTuner

session = Session()
estimator = PyTorch(
    entry_point="train.py",
    source_dir="src",
    role="MyRole",
    image_uri="763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training-neuronx:"
    "2.9.0-neuronx-py312-sdk2.29.0-ubuntu24.04",
    instance_type="ml.trn1.2xlarge",
    instance_count=1,
    sagemaker_session=session,
)
tuner = HyperparameterTuner(
    estimator,
    objective_metric_name="loss",
    objective_type="Minimize",
    metric_definitions=[{"Name": "loss", "Regex": "loss=([0-9.]+)"}],
    hyperparameter_ranges={"lr": ContinuousParameter(0.001, 0.1)},
    max_jobs=4,
)
tuner.fit(session.upload_data("data", key_prefix="train"))
