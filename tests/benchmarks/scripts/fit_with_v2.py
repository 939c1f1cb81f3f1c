"""SageMaker SDK v2's fit(), as fit_with_windtunnel.py has ours."""

import sys
import time

from sagemaker.pytorch import PyTorch

estimator = PyTorch(
    entry_point="eight_seconds.py",
    source_dir=sys.argv[1],
    role="MyRole",
    image_uri="763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training-neuronx:"
    "2.9.0-neuronx-py312-sdk2.29.0-ubuntu24.04",
    instance_type="ml.trn1.2xlarge",
    instance_count=1,
    hyperparameters={"seconds": sys.argv[2]},
)
began = time.perf_counter()
estimator.fit(wait=sys.argv[3] == "wait")
print("RESULT", estimator.latest_training_job.name, time.perf_counter() - began)
