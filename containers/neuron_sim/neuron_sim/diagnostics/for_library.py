"""What to change where a library reads values of the device, not the script. Pure."""

from __future__ import annotations


def advice(library: str) -> str:
    """``library``: as `script_lines.calling_library` names it; empty for the script itself, of which there is none."""
    package, _, file = library.partition("/")
    if not library:
        return ""
    if package == "transformers" and "mask" in file:
        return (
            "transformers looks whether the attention mask is all ones, which helps on GPUs: train with transformers "
            "4.48 and a mask, which leaves that out on XLA (unless attn_implementation='sdpa' asks for it)."
        )
    if package == "transformers" and file.startswith("modeling_utils.py"):
        return "Without an attention_mask transformers looks for padding among the tokens: pass one."
    if (package, file.partition(":")[0]) == ("torch", "nn/modules/transformer.py"):
        return (
            "nn.TransformerEncoder looks whether its mask is causal: say so with is_causal=True, or False for any "
            "other mask (nn.TransformerDecoder: tgt_is_causal=)."
        )
    if package == "torch" and file.startswith("distributions/"):
        return (
            "torch.distributions checks its arguments: pass validate_args=False, or once before all of them "
            "torch.distributions.Distribution.set_default_validate_args(False)."
        )
    return f"{package} does it, not the script: look for an argument of {package} that leaves it out."
