"""Tries every entry of the registry of names under the framework version that the job asks for."""

import importlib
import sys

import torch
import torch_xla
from saying import say

from neuron_sim import names, settings

version = settings.read().framework_version
# What a refused class or function is called with does not matter: it never gets to look.
absent, lingering, silent, other, refused = [], [], [], [], 0
for name in names.every():
    full = f"{name.module}.{name.name}"
    try:
        value = getattr(importlib.import_module(name.module), name.name)
    except AttributeError:
        if name.supported and name.in_version(version):
            absent.append(full)
        continue
    if name.until and name.until < version:
        lingering.append(full)
    if name.supported or name.module.startswith("torch.distributed"):
        continue
    try:
        value()
        silent.append(full)
    except Exception as error:
        refused += 1
        if type(error).__name__ != "NotSimulatedError" or name.refused not in str(error):
            other.append(f"{full}: {type(error).__name__}: {error}")
say(absent=absent, lingering=lingering, silent=silent, other=other, refused=refused)
