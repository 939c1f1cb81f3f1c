"""Windtunnel's local backend: a server that speaks SageMaker's API and runs training jobs here."""
