"""Every name of torch_xla, torch_neuronx and others that public Trainium scripts use, and what it does here. Pure.

`device.framework_names` looks up here which names to bring back, to refuse and to warn of; the table in the
documentation, and what `windtunnel check` says of them, are written from it; a test in the image tries every entry.

torch_xla_names          torch_xla's modules: versions as read from the sources of its releases
torch_distributed_names  torch.distributed over the backend `xla`
neuron_names             torch_neuronx and libneuronxla
registry                 all names together
absent_packages          packages that the image does not have
page                     the table as Markdown, and what `windtunnel check` reads of it
"""

from neuron_sim.names.name import FIRST, LATEST, Name, Version
from neuron_sim.names.registry import every

__all__ = ["FIRST", "LATEST", "Name", "Version", "every"]
