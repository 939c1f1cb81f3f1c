"""SageMaker SDK v3's train(), as fit_with_windtunnel.py has ours."""

import sys
import time

from sagemaker.core.training.configs import Compute, SourceCode
from sagemaker.train import ModelTrainer

trainer = ModelTrainer(
    training_image="763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training-neuronx:"
    "2.9.0-neuronx-py312-sdk2.29.0-ubuntu24.04",
    source_code=SourceCode(source_dir=sys.argv[1], entry_script="eight_seconds.py"),
    compute=Compute(instance_type="ml.trn1.2xlarge", instance_count=1),
    hyperparameters={"seconds": sys.argv[2]},
    base_job_name="from-v3",
)
began = time.perf_counter()
trainer.train(wait=sys.argv[3] == "wait")
print("RESULT", trainer._latest_training_job.training_job_name, time.perf_counter() - began)
