"""Gradient checkpointing on XLA: torch's function needs `torch.xla`, torch_xla's takes only ``use_reentrant=True``."""

FOR_A_LIBRARY = (
    "before the import of the library: import torch.utils.checkpoint; "
    "from torch_xla.utils.checkpoint import checkpoint; "
    'torch.utils.checkpoint.checkpoint = lambda *a, **k: checkpoint(*a, **{**k, "use_reentrant": True}).'
)
"""What to write where a library calls the function: newer transformers pass use_reentrant=False by themselves."""
