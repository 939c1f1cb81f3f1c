"""torch's own encoder, which looks at the mask's values on the host unless it is told what the mask is."""

import sys

import torch
import torch_xla
import torch_xla.distributed.parallel_loader as pl

device = torch_xla.device()
layer = torch.nn.TransformerEncoderLayer(16, 2, 16, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
mask = torch.nn.Transformer.generate_square_subsequent_mask(8).to(device)
told = True if sys.argv[1] == "told" else None
for batch in pl.MpDeviceLoader(torch.utils.data.DataLoader(torch.randn(32, 8, 16), batch_size=4), device):
    optimizer.zero_grad()
    model(batch, mask=mask, is_causal=told).square().mean().backward()  # line: model
    optimizer.step()
