"""The configuration of a model on the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path


def config_of(model: str) -> Path:
    """Its config.json, out of the cache of this machine if it is there; HF_HUB_OFFLINE=1 looks no further.

    Raises:
        InvalidInput: it cannot be had.
    """
    from windtunnel.priceperf import InvalidInput
    from windtunnel.priceperf.model.architectures import architecture

    instead = "give its config.json, or the folder that has it"
    short = model.rpartition("/")[2]
    if architecture(short) is not None:
        instead = f"{short} is known here without it. Or {instead}"
    try:
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    except ImportError:
        raise InvalidInput(
            f"there is no folder {model} here. If it is a model of the Hugging Face hub, "
            f"pip install 'windtunnel[hub]', or {instead}"
        ) from None
    for only_cached in (True, False):
        try:
            if not only_cached:
                # Asks once. The download alone asks six times, 23 s long, where there is no network.
                get_hf_file_metadata(hf_hub_url(model, "config.json"))
            return Path(hf_hub_download(model, "config.json", local_files_only=only_cached))
        except Exception as error:  # noqa: BLE001 - those of its client for HTTP have a root that depends on the version
            why = " ".join(str(error).split()).rstrip(".")  # after the status, who may have a gated model
    raise InvalidInput(
        f"there is no folder {model} here, and its config.json cannot be had from the Hugging Face hub ({why}): "
        f"{instead}"
    )
