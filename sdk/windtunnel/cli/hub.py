"""Fetches the configuration of a model on the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path


def config_of(model: str) -> Path:
    """The model's config.json: from this machine's cache, else from the hub (not with HF_HUB_OFFLINE=1).

    Raises:
        InvalidInput: the file is not in the cache and cannot be fetched.
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
                # Tries once. Without a network, the download alone would try six times, for 23 s.
                get_hf_file_metadata(hf_hub_url(model, "config.json"))
            return Path(hf_hub_download(model, "config.json", local_files_only=only_cached))
        except Exception as error:  # noqa: BLE001 - the root class of its HTTP client's errors depends on the version
            why = " ".join(str(error).split()).rstrip(".")  # a later line says who may have a gated model
    raise InvalidInput(
        f"there is no folder {model} here, and its config.json cannot be had from the Hugging Face hub ({why}): "
        f"{instead}"
    )
