"""What to change if a library, not the script, reads values of the device or computes on the CPU. Pure."""

from __future__ import annotations

_CAPTURABLE = "Pass capturable=True to the optimizer: it then keeps on the device what it reads here."
_OF_TORCH = {
    "asgd.py": _CAPTURABLE,
    "rprop.py": _CAPTURABLE,
    "nadam.py": _CAPTURABLE,
    "radam.py": _CAPTURABLE,
    "_adafactor.py": "torch's Adafactor reads two norms of each parameter in each step: "
    "transformers.optimization.Adafactor(parameters, lr=..., scale_parameter=False, relative_step=False) reads none.",
    "lbfgs.py": "torch's LBFGS decides on the host, by values of the device, and its graphs grow with its history: "
    "train with AdamW, or keep LBFGS and its model on the CPU.",
    "amp/grad_scaler.py": "torch's GradScaler looks in each step whether fp16 gradients overflowed. bf16 needs no "
    "scaling: leave it out, call loss.backward() and the optimizer's own step.",
}
"""Advice for torch's scaler, and for optimizers of torch.optim, by file."""


def inside(library: str) -> str:
    """What follows the line or the operation in a finding's text: the library in which it is, if any."""
    return f" (in {library})" if library else ""


def advice(library: str) -> str:
    """Advice for a library, named as by `script_lines.calling_library`; empty for the script itself, named by ""."""
    package, _, file = library.partition("/")
    if not library:
        return ""
    if package == "transformers" and "mask" in file:
        return (
            "transformers checks whether the attention mask is all ones, which helps on GPUs: train with transformers "
            "4.48 and a mask. That version does not check on XLA, unless attn_implementation='sdpa' asks for it."
        )
    if package == "transformers" and file.startswith("modeling_utils.py"):
        return "Without an attention_mask transformers looks for padding among the tokens: pass a mask."
    if (package, file.partition(":")[0]) == ("torch", "nn/modules/transformer.py"):
        return (
            "nn.TransformerEncoder checks whether its mask is causal: pass is_causal=True, or False for any "
            "other mask (nn.TransformerDecoder: tgt_is_causal=)."
        )
    if package == "torch" and file.startswith("distributions/"):
        return (
            "torch.distributions checks its arguments: pass validate_args=False, or once before all of them "
            "torch.distributions.Distribution.set_default_validate_args(False)."
        )
    if package == "torch" and (found := _OF_TORCH.get(file.partition(":")[0].removeprefix("optim/"))):
        return found
    if package == "torchmetrics" and file.startswith("aggregation.py"):
        return 'torchmetrics looks for NaN in its input: MeanMetric(nan_strategy="disable") turns that off.'
    if package == "torchmetrics":
        return (
            "torchmetrics checks its input in each update: pass validate_args=False. If a metric sorts all scores "
            "(AUROC, AveragePrecision), also pass thresholds=100 or so."
        )
    return f"{package} does this, not the script: look for an argument of {package} that turns it off."
