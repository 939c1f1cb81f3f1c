"""Where jobs run: the local server or AWS, behind narrow ports to SageMaker, S3, CloudWatch, STS and IAM."""
