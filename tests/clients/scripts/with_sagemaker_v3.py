from sagemaker.core.helper.session_helper import Session
from sagemaker.core.training.configs import Compute, InputData, SourceCode
from sagemaker.core.utils.utils import configure_logging
from sagemaker.train import ModelTrainer
from sagemaker.train.distributed import Torchrun

configure_logging()  # without it, v3 does not show the job's log
session = Session()
trainer = ModelTrainer(
    training_image="763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training-neuronx:"
    "2.9.0-neuronx-py312-sdk2.29.0-ubuntu24.04",
    source_code=SourceCode(source_dir="src", entry_script="train.py"),
    compute=Compute(instance_type="ml.trn1.32xlarge", instance_count=1),
    distributed=Torchrun(),
    hyperparameters={"epochs": 2},
    environment={"WINDTUNNEL_LOCAL_CORES": "2"},
    base_job_name="from-v3",
    sagemaker_session=session,
)
data = session.upload_data("data", session.default_bucket(), "train")
trainer.train(input_data_config=[InputData(channel_name="train", data_source=data)])
print(trainer._latest_training_job.model_artifacts.s3_model_artifacts)
