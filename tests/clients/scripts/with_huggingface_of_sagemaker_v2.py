from sagemaker import Session
from sagemaker.huggingface import HuggingFace

session = Session()
estimator = HuggingFace(
    entry_point="train.py",
    source_dir="src",
    role="MyRole",
    image_uri="763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-training-neuronx:"
    "2.1.2-transformers4.43.2-neuronx-py310-sdk2.20.0-ubuntu20.04",
    py_version="py310",
    instance_type="ml.trn1.2xlarge",
    instance_count=1,
    hyperparameters={"epochs": 2},
    sagemaker_session=session,
)
estimator.fit({"train": session.upload_data("data", key_prefix="train")}, wait=False)
print(estimator.latest_training_job.name)
