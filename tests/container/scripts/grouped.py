"""Written for a transformers that makes no group of processes when it is imported."""

import torch
import torch_xla.distributed.xla_backend
from saying import say
from transformers import TrainingArguments

torch.distributed.init_process_group("xla")
say(world=torch.distributed.get_world_size())
