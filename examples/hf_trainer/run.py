"""Rehearses train.py on the two simulated NeuronCores of a trn1.2xlarge, and prints its bill."""

from pathlib import Path

from windtunnel import PyTorch

estimator = PyTorch(
    "train.py",
    source_dir=str(Path(__file__).resolve().parent),
    framework_version="2.9",
    instance_type="ml.trn1.2xlarge",
    instance_count=1,
    distribution={"torch_distributed": {"enabled": True}},
    # For a few steps of a small model, XLA's optimisation takes longer than it saves.
    environment={"XLA_FLAGS": "--xla_backend_optimization_level=0"},
    metric_definitions=[{"Name": "loss", "Regex": r"\bloss=([0-9.]+)"}],
)
job = estimator.fit()
print(job.diagnostics(), job.report(), sep="\n")
