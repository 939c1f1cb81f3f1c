"""Traces modules for inference as public scripts do; says what came out."""

import tempfile
import warnings

import torch
from saying import say

import torch_neuronx
from torch_neuronx.xla_impl.ops import nki_jit

FOLDER = tempfile.mkdtemp()
torch.manual_seed(0)


def network():
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()


def answer(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def difference(got, wanted):
    return float((got - wanted).abs().max())


def saved(module):
    torch.jit.save(module, f"{FOLDER}/module.pt")
    return torch.jit.load(f"{FOLDER}/module.pt")


model, other, batch = network(), network(), torch.rand(7, 4)
wanted = model(batch).detach()
traced = torch_neuronx.trace(model, batch[:2])
loaded = saved(traced)
batched = torch_neuronx.trace(model, batch[:2])
in_place = torch_neuronx.dynamic_batch(batched) is batched
batched = saved(batched)
reloaded = torch_neuronx.dynamic_batch(loaded)
pair = torch_neuronx.dynamic_batch(torch_neuronx.trace(lambda x, y: (x + y, x * y), (batch[:3], batch[:3])))
lone = torch_neuronx.dynamic_batch(torch_neuronx.trace(lambda x: (x + 1,), batch[:2]))
within = torch_neuronx.dynamic_batch(
    torch.nn.Sequential(torch_neuronx.trace(model, batch[:2]), torch.nn.ReLU())
)
named = torch_neuronx.trace(lambda x: {"sum": x + 1}, batch[:2])
parallel = torch_neuronx.DataParallel(torch_neuronx.trace(model, batch[:2]), device_ids=["nc:0", 1])
fixed = torch_neuronx.DataParallel(torch_neuronx.trace(model, batch[:2]), device_ids=[0, 1])
fixed.disable_dynamic_batching()
with warnings.catch_warnings(record=True) as profiled:
    warnings.simplefilter("default")
    for _ in range(2):
        with torch_neuronx.experimental.profiler.profile(
            9012,
            profile_type="system",
            target="neuron_profile_perfetto",
            output_dir=FOLDER,
            output_path=FOLDER,
            ms_duration=600,
        ) as profiler:
            profiler.start()
separate = torch_neuronx.trace(model, batch[:2], inline_weights_to_neff=False)
torch_neuronx.replace_weights(separate, other.state_dict())
with warnings.catch_warnings(record=True) as inlined:
    warnings.simplefilter("always")
    torch_neuronx.replace_weights(traced, other)
torch_neuronx.move_trace_to_device(separate, 1)
torch_neuronx.async_load(separate)
torch_neuronx.lazy_load(separate)
torch_neuronx.set_neuron_cores(separate, 0, 2)

on_cpu = torch_neuronx.trace(model, batch[:2], compiler_args="--target trn1", cpu_backend=True)
say(
    differences=[
        difference(loaded(batch[:2]), wanted[:2]),
        difference(batched(batch), wanted),
        difference(reloaded(batch), wanted),
        difference(lone(batch)[0], batch + 1),
        difference(within(batch), wanted.relu()),
        difference(named(batch[:2])["sum"], batch[:2] + 1),
        difference(pair(batch, batch)[1], batch * batch),
        difference(parallel(batch), wanted),
        difference(fixed(batch[:4]), wanted[:4]),
        difference(separate(batch[:2]), other(batch[:2]).detach()),
        difference(traced(batch[:2]), wanted[:2]),
        difference(on_cpu(batch[:2]), wanted[:2]),
    ],
    gradient=traced(batch[:2]).requires_grad,
    kind=isinstance(loaded, torch.jit.ScriptModule),
    workers=parallel.num_workers,
    inlined=[str(warning.message) for warning in inlined],
    in_place=in_place,
    empty=list(reloaded(batch[:0]).shape[:1]),
    profiled=[str(warning.message) for warning in profiled],
    shape=answer(lambda: traced(batch)),
    no_batches=[
        answer(lambda: torch_neuronx.dynamic_batch(batched, False)(batch)),
        answer(lambda: torch_neuronx.dynamic_batch(torch_neuronx.trace(torch.add, (batch[:2], batch[0])))),
        answer(lambda: torch_neuronx.dynamic_batch(named)),
    ],
    dtype=answer(lambda: loaded(batch[:2].double())),
    ragged=answer(lambda: pair(batch, batch[:5])),
    fft=answer(lambda: torch_neuronx.trace(torch.fft.fft, batch)),
    core=answer(lambda: torch_neuronx.move_trace_to_device(separate, 2)),
    cores=answer(lambda: torch_neuronx.set_neuron_cores(separate, 1, 2)),
    no_tensor=answer(lambda: torch_neuronx.trace(model, ("text",))),
    target=answer(lambda: torch_neuronx.trace(model, batch[:2], cpu_backend=True)),
    aliases=answer(lambda: torch_neuronx.trace(model, batch[:2], input_output_aliases={0: 0})),
    kernel=answer(lambda: nki_jit(len)([])),
    unknown=answer(lambda: torch_neuronx.something_else),
)
