from sagemaker.huggingface import HuggingFace

estimator = HuggingFace(
    entry_point="train.py",
    source_dir="src",
    role="MyRole",
    transformers_version="4.46.1",
    pytorch_version="2.3.0",
    py_version="py310",
    instance_type="ml.trn1.2xlarge",
    instance_count=1,
)
estimator.fit()
