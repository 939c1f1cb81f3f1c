from sagemaker.remote_function import remote


@remote(
    image_uri="763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training-neuronx:"
    "2.9.0-neuronx-py312-sdk2.29.0-ubuntu24.04",
    instance_type="ml.trn1.2xlarge",
    dependencies="remote_requirements_v2.txt",
)
def train(epochs: int) -> str:
    import torch
    import torch_xla.core.xla_model as xm

    device = xm.xla_device()
    total = torch.ones(epochs, device=device).sum()
    return f"{epochs} epochs on {device.type}: {total.item():.0f}"


print(train(3))
