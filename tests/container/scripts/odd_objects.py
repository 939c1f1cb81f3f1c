"""What a script's own classes may refuse, or do their own way, without harm on trn1: the simulator asks them, too."""

import pickle

import torch
import torch_xla
from torch.utils.data import DataLoader, IterableDataset, Sampler
from torch_xla.distributed.parallel_loader import MpDeviceLoader

device = torch_xla.device()


class Stream(IterableDataset):
    def __len__(self):
        raise RuntimeError("iterate first")

    def __iter__(self):
        return iter([torch.ones(2)] * 4)


class Drawn(Sampler):
    def __init__(self):
        pass

    def __iter__(self):
        return iter([[0, 1], [2, 3]])

    def __len__(self):
        return self.drawn  # not yet


class Rows:
    def __iter__(self):
        return iter([torch.ones(2)] * 2)

    def __getattr__(self, name):
        return {"rows": 2}[name]


class Equal(DataLoader):
    def __eq__(self, other):
        return self.batch_size == other.batch_size


for loader in (
    DataLoader(Stream(), 2),
    DataLoader([1, 2, 3, 4], batch_sampler=Drawn()),
    MpDeviceLoader(Rows(), device),
    Equal([1, 2, 3, 4], 2),
):
    assert [batch is not None for batch in loader] == [True] * 2

for odd in (
    torch.ones(2, dtype=torch.complex64).conj(),
    torch.ones(2, dtype=torch.complex64).conj().imag,
    torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    torch.eye(2).to_sparse(),
):
    assert len(list(DataLoader([odd], batch_size=None))) == 1
assert torch.eye(2).to_sparse().to(torch.float64).dtype == torch.float64


class Named(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        if function is torch.Tensor.to:
            return "the script's own"
        return super().__torch_function__(function, types, arguments, keywords or {})


assert torch.ones(1).as_subclass(Named).to("cpu") == "the script's own"
assert pickle.loads(pickle.dumps(torch.Tensor.cpu)) is torch.Tensor.cpu


class Grouped(torch.nn.Linear):
    def parameters(self, lr=0.1):
        return [{"params": [self.weight], "lr": lr}, {"params": [self.bias], "lr": 2 * lr}]

    def named_modules(self, *, within):
        raise AssertionError("only the script calls it")

    def grown(self, *, depth):
        raise AssertionError("only the script calls it")


class Own(torch.optim.SGD):
    def __eq__(self, other):
        return self is other


model = Grouped(4, 1).to(device)
model.children = model.grown
optimizer = Own(model.parameters(), lr=0.1)
for _ in range(4):
    model(torch.ones(2, 4).to(device)).sum().backward()
    optimizer.step()
    torch_xla.sync()
print("the end")
