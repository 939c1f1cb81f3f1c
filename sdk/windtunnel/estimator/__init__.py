"""Estimators with the names of SageMaker SDK v2: keyword arguments -> a request -> a job."""
