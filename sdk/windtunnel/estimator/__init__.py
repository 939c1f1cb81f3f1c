"""Estimators with the names of SageMaker SDK v2: they make a request of keyword arguments, and a job of it."""
