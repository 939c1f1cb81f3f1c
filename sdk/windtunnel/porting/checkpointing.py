"""Gradient checkpointing on XLA: torch's asks for `torch.xla`, torch_xla's takes ``use_reentrant=True`` alone."""

FOR_A_LIBRARY = (
    "before the import of the library: import torch.utils.checkpoint; "
    "from torch_xla.utils.checkpoint import checkpoint; "
    'torch.utils.checkpoint.checkpoint = lambda *a, **k: checkpoint(*a, **{**k, "use_reentrant": True}).'
)
"""What to write where a library calls it: newer transformers ask for use_reentrant=False by themselves."""
