from sagemaker import Session
from sagemaker.pytorch import PyTorchModel
from sagemaker.s3 import S3Downloader, S3Uploader

session = Session()
model = PyTorchModel(
    model_data=session.upload_data("model.tar.gz", key_prefix="models"),
    role="MyRole",
    source_dir="code",
    entry_point="inference.py",
    framework_version="1.12.0",
    py_version="py38",
    sagemaker_session=session,
)
transformer = model.transformer(
    instance_count=1,
    instance_type="ml.c5.xlarge",
    strategy="SingleRecord",
    assemble_with="Line",
    accept="application/json",
)
questions = S3Uploader.upload_string_as_file_body(
    '{"inputs": [[1, 2]]}\n{"inputs": [[3, 4], [5, 6]]}\n',
    f"s3://{session.default_bucket()}/questions/a.jsonl",
    sagemaker_session=session,
)
transformer.transform(questions, content_type="application/json", split_type="Line", join_source="Input")
print(S3Downloader.read_file(f"{transformer.output_path}/a.jsonl.out", sagemaker_session=session))
transformer.delete_model()
