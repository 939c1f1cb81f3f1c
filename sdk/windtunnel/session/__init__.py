"""Where jobs run: the local server or AWS, behind one narrow port to SageMaker, S3, logs, STS and IAM."""
