"""A model of transformers whose attention looks at the mask's values on the host; once, another library does there."""

import torch
import torch_xla
import torch_xla.distributed.parallel_loader as pl
from accelerate.utils import send_to_device
from transformers import BertConfig, BertModel

device = torch_xla.device()
config = BertConfig(
    hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, vocab_size=50
)
model = BertModel._from_config(config, attn_implementation="sdpa").to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = [{"input_ids": torch.arange(8), "attention_mask": torch.ones(8, dtype=torch.long)}] * 32
for step, batch in enumerate(pl.MpDeviceLoader(torch.utils.data.DataLoader(data, batch_size=4), device)):
    optimizer.zero_grad()
    output = model(**(batch if step else send_to_device(send_to_device(batch, "cpu"), device)))  # line: model
    output.pooler_output.square().mean().backward()
    optimizer.step()
