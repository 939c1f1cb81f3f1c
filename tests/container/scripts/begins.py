"""Shows itself at its first line, and after imports that do and do not bring torch_xla."""

import beginning


@beginning.show
def first_line():
    """Nothing is imported but what is needed to look."""


import transformers


@beginning.show
def with_libraries():
    """transformers has imported torch, and not torch_xla."""


import accelerate


@beginning.show
def with_torch_xla():
    """accelerate imports it."""
