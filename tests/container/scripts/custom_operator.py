"""The MLP of AWS's tutorial, trained with ReLU as a C++ operator and with torch's.

custom_operator.py FOLDER
"""

import shutil
import sys
from pathlib import Path

import torch
import torch_xla
from saying import say
from torch_neuronx.xla_impl import custom_op

COMPUTE = """
#include <stdint.h>
#include <torch/torch.h>

torch::Tensor rectify(const torch::Tensor& in) {
  torch::Tensor out = torch::zeros(in.sizes(), torch::kFloat);
  auto from = in.accessor<float, 2>();
  auto to = out.accessor<float, 2>();
  for (int64_t row = 0; row < in.size(0); row++)
    for (int64_t column = 0; column < in.size(1); column++)
      to[row][column] = from[row][column] > 0.0 ? from[row][column] : 0.0;
  return out;
}

torch::Tensor pass_back(const torch::Tensor& gradient, const torch::Tensor& in) {
  torch::Tensor out = torch::zeros(in.sizes(), torch::kFloat);
  auto from = in.accessor<float, 2>();
  auto given = gradient.accessor<float, 2>();
  auto to = out.accessor<float, 2>();
  for (int64_t row = 0; row < in.size(0); row++)
    for (int64_t column = 0; column < in.size(1); column++)
      to[row][column] = from[row][column] > 0.0 ? given[row][column] : 0.0;
  return out;
}

torch::Tensor halve(const torch::Tensor& in, double by) {
  return torch::zeros({in.size(0), 7}, torch::kFloat);
}
"""
SHAPE = """
#include <torch/torch.h>
#include "torchneuron/register.h"

torch::Tensor of_one(torch::Tensor in) { return torch::zeros(in.sizes(), torch::kFloat); }
torch::Tensor of_two(torch::Tensor gradient, torch::Tensor in) { return torch::zeros(in.sizes(), torch::kFloat); }
torch::Tensor of_halves(torch::Tensor in, double by) { return torch::zeros(in.sizes(), torch::kFloat); }

NEURON_LIBRARY(tutorial, m) {
  m.def("relu_forward", &of_one, "rectify");
  m.def("relu_backward", &of_two, "pass_back");
  m.def("halve", &of_halves, "halve");
}
"""

BROKEN = """
#include <torch/torch.h>
#include "torchneuron/register.h"

torch::Tensor of_one(torch::Tensor in) { return torch::zeros(in.sizes(), torch::kFloat); }

NEURON_LIBRARY(broken, m) { m.def("one", &of_one, "nowhere"); }
"""


class Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return torch.ops.tutorial.relu_forward(input)  # line: forward

    @staticmethod
    def backward(ctx, gradient):
        (input,) = ctx.saved_tensors
        return torch.ops.tutorial.relu_backward(gradient, input)


class MLP(torch.nn.Module):
    def __init__(self, activation):
        super().__init__()
        torch.manual_seed(0)
        sizes = (28 * 28, 120, 84, 10)
        self.layers = torch.nn.ModuleList(map(torch.nn.Linear, sizes, sizes[1:]))
        self.activation = activation

    def forward(self, images):
        for layer in self.layers[:-1]:
            images = self.activation(layer(images))
        return torch.log_softmax(self.layers[-1](images), dim=1)


def train(activation, device):
    """The losses of some steps, and the parameters after them."""
    model = MLP(activation).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(1)
    images, labels = torch.randn(32, 28 * 28).to(device), torch.randint(0, 10, (32,)).to(device)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = torch.nn.functional.nll_loss(model(images), labels)
        loss.backward()
        optimizer.step()
        torch_xla.sync()
        losses.append(loss.item())
    return losses, [parameter.detach().cpu() for parameter in model.parameters()]


def refusal(function, *given, **named):
    try:
        function(*given, **named)
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"


folder = Path(sys.argv[1])
(folder / "relu.cpp").write_text(COMPUTE)
(folder / "shape.cpp").write_text(SHAPE)
(folder / "broken.cpp").write_text(BROKEN)
(folder / "empty.cpp").touch()
no_kernel = refusal(
    custom_op.load,
    name="broken",
    compute_srcs=[str(folder / "empty.cpp")],
    shape_srcs=[str(folder / "broken.cpp")],
    build_directory=str(folder),
)
sources = {"compute_srcs": [str(folder / "relu.cpp")], "shape_srcs": [str(folder / "shape.cpp")]}
custom_op.load(name="relu", build_directory=str(folder), **sources)
custom_op.load_library(str(folder / "librelu.so"))
built = (folder / "librelu.so").stat().st_mtime_ns
custom_op.load(name="relu", build_directory=str(folder), **sources)
again = (folder / "librelu.so").stat().st_mtime_ns != built
shutil.copy(folder / "librelu.so", folder / "copy.so")
of_the_same_name = refusal(custom_op.load_library, str(folder / "copy.so"))
(folder / "copy.so").replace(folder / "librelu.so")
built_anew = refusal(custom_op.load_library, str(folder / "librelu.so"))

device = torch_xla.device()
mine, torchs = train(Relu.apply, device), train(torch.relu, device)
say(
    again=again,
    no_kernel=no_kernel,
    of_the_same_name=of_the_same_name,
    built_anew=built_anew,
    losses=mine[0],
    torchs=torchs[0],
    difference=max((a - b).abs().max().item() for a, b in zip(mine[1], torchs[1])),
    wrong_shape=refusal(torch.ops.tutorial.halve, torch.ones(2, 3, device=device), 2.0),
    on_the_cpu=refusal(torch.ops.tutorial.relu_backward, torch.ones(2, 3), torch.ones(2, 3, device=device)),
    multicore=refusal(custom_op.load, name="relu", multicore=True, **sources),
    no_shape=refusal(custom_op.load, name="relu", compute_srcs=[str(folder / "empty.cpp")], shape_srcs=[]),
    no_source=refusal(custom_op.load, name="relu", compute_srcs=["nowhere.cpp"], shape_srcs=[]),
)
