"""An embedding and a head that share their weights go to the device, and are tied again there, or not, or frozen."""

import torch
import torch_xla
import torch_xla.core.xla_model as xm
from saying import say


class Model(torch.nn.Module):
    """A head of an embedding's weights, and a layer that stands twice: that one is a module, and stays one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 8)
        self.head = torch.nn.Linear(8, 50, bias=False)
        layer = torch.nn.Linear(8, 8)
        self.layers = torch.nn.ModuleList([layer, layer])
        self.tie()

    def tie(self) -> None:
        self.head.weight = self.embedding.weight

    def named_parameters(self, prefix: str = "", recurse: bool = True):
        """As of torch 1.x."""
        return super().named_parameters(prefix, recurse)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.embedding(tokens)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(hidden)


def train(model: Model, how: str) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    tokens = torch.randint(50, (4, 6)).to(torch_xla.device())
    for _ in range(4):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
        xm.optimizer_step(optimizer)
        torch_xla.sync()
    say(how=how, weights=sum(parameter.numel() for parameter in model.parameters()))


frozen = Model()
frozen.head.weight.requires_grad = False
train(frozen.to(torch_xla.device()), "frozen")
again = Model().to(torch_xla.device())
again.tie()
train(again, "again")
left = Model().to(torch_xla.device())  # line: left
train(left, "left")
