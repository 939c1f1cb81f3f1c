"""Values of the device that are read in a function which the training loop hands them to."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_patch import changed, script
from tests.unit.sdk.porting.test_program import HEAD, STEP, said
from windtunnel.porting.program import read_program

_STEPPED = "    xm.optimizer_step(optimizer)\n"


def _told(function: str, call: str, before: str = "") -> list[str]:
    text = f"{HEAD}{function}{before}{STEP}    {call}\n{_STEPPED}"
    return said(text, "host_read")


_READS = [
    ("def log(step, value):\n    print(step, float(value))\n", "log(step, loss)", 8),
    ("def log(value):\n    mean = value.mean()\n    return mean.item()\n", "log(out)", 9),
    ("class Meter:\n    def update(self, value):\n        self.sum += value.item()\nmeter = Meter()\n",
     "meter.update(loss)", 9),
    ("def log(value):\n    if isinstance(value, torch.Tensor):\n        value = value.item()\n", "log(loss)", 9),
    ("def log(value):\n    if torch.is_tensor(value):\n        value = value.cpu()\n", "log(loss)", 9),
    ("def log(value):\n    print(value.item())\n", "if rank == 0: log(loss)", 8),
    ("def norm(values):\n    for one in values:\n        total += one.grad.norm().item()\n",
     "norm(model.parameters())", 9),
]  # fmt: skip


@pytest.mark.parametrize(("function", "call", "line"), _READS)
def test_a_function_that_reads_what_it_is_given(function: str, call: str, line: int) -> None:
    """Though it names no device: it gets a tensor of it in each step."""
    (found,) = _told(function, call)
    handed = HEAD.count("\n") + function.count("\n") + STEP.count("\n") + 1
    assert found.startswith(f"{line}: host_read: ")
    assert f" in each step, with a tensor of the device from line {handed}: the host waits" in found


@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("def log(value):\n    print(value.item())\n", "if step % 9 == 0: log(loss)"),
        ("def log(step, value):\n    if step % 9 == 0:\n        print(value.item())\n", "log(step, loss)"),
        ("def log(step, value):\n    if step % 9:\n        return\n    print(value.item())\n", "log(step, loss)"),
        ("def log(value):\n    print(value.item())\n", "log(step)"),
        ("def log(values):\n    print(len([one.grad is None for one in values]))\n", "log(model.parameters())"),
        ("def log(value):\n    print(value.item())\n", "log(out.shape[0])"),
        ("def log(value):\n    print(value.shape, other.item())\n", "log(loss)"),
        ("def log(value):\n    print(value.item())\n", "xm.add_step_closure(log, args=(loss,))"),
        ("class Meter:\n    def update(self, value):\n        self.sum += value.item()\nmeter = other()\n",
         "meter.update(loss)"),
        ("class Meter:\n    def update(self, value):\n        self.sum += value\nmeter = Meter()\n",
         "meter.update(loss)"),
        ("def log(value):\n    def later():\n        print(value.item())\n    later_on(later)\n", "log(loss)"),
    ],
)  # fmt: skip
def test_a_function_that_reads_nothing_in_each_step(function: str, call: str) -> None:
    """Now and then, of the host, in another class, or nothing at all."""
    assert _told(function, call) == []


def test_a_function_that_hands_a_tensor_on() -> None:
    """As a loss that looks for its targets: the remark names the call that hands it on."""
    functions = "def find(values):\n    return values.tolist()\ndef found(out):\n    return find(out * 2)\n"
    (found,) = _told(functions, "found(out)")
    assert found.startswith(
        "8: host_read: values.tolist() in each step, with a tensor of the device from line 10"
    )


def test_a_function_of_another_file() -> None:
    """The remark is on the line that reads, and names the one that hands over."""
    metrics = script("def mean(value):\n    return value.mean().item()\n", "metrics.py")
    text = HEAD.replace("import", "from metrics import mean\nimport", 1) + STEP + f"    mean(out)\n{_STEPPED}"
    (found,) = read_program([script(text), metrics])[metrics]
    assert found.line == 2 and "with a tensor of the device from line 14 of train.py" in found.text


def test_a_function_for_the_host_alone() -> None:
    """A reference beside the training has nothing to do with a device."""
    step = STEP.replace("pl.MpDeviceLoader(loader, device)", "loader")
    text = f"import torch, torch_xla\ndef log(value):\n    print(value.item())\ndef main():\n    {step}    log(loss)\n"
    text = (
        text.replace("\noptimizer", "\n    optimizer")
        .replace("\nloader", "\n    loader")
        .replace("\nfor", "\n    for")
    )
    text = (
        text.replace("    out", "        out")
        .replace("    loss", "        loss")
        .replace("    log(", "        log(")
    )
    assert not said(text, "host_read")


_MODULE = """\
class Net(torch.nn.Module):
    def __init__(self):
        self.register_buffer("place", torch.zeros(1))
    def forward(self, x):
        self.keep(x)
        return x
    def keep(self, x):
        place = int(self.place)
    def show(self):
        print(self.place.item())
"""


def test_a_buffer_that_the_forward_pass_reads() -> None:
    """As the place in a queue: it is on the device with the model. What is called besides is no part of a step."""
    (found,) = _told(_MODULE, "pass")
    assert found.startswith("14: host_read: int(self.place) in each step, of a buffer")
    assert "a Python number" in found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("register_buffer", "remember"),
        ("self.keep(x)", "if self.training: self.keep(x)"),
        ("int(self.place)", "int(self.other)"),
        ("int(self.place)", "self.place[0].long()"),
        ("int(self.place)", "int(self.place.shape[0])"),
    ],
)
def test_a_forward_pass_that_reads_nothing(old: str, new: str) -> None:
    """Of the device, or in each step."""
    assert _told(_MODULE.replace(old, new), "pass") == []


def test_a_step_that_begins_late() -> None:
    """Until there is enough to learn of: from there on each step reads."""
    learn = """\
def learn(model, batch, device):
    if len(batch) < 8:
        return None
    loss = model(batch).sum()
    loss.backward()
    return loss.item()
for batch in loader:
    learn(model, batch, device)
    torch_xla.sync()
"""
    (found,) = said(HEAD + learn, "host_read")
    assert found.startswith("12: host_read: loss.item() in each step: ")


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        ("xm.wait_device_ops()", True),
        ("xm.mark_step(wait=True)", True),
        ("xm.mark_step(True)", True),
        ("torch_xla.sync(True)", True),
        ("torch_xla.sync()", False),
        ("torch_xla.sync(wait=False)", False),
        ("if step % 50 == 0: xm.wait_device_ops()", False),
        ("xm.add_step_closure(xm.wait_device_ops)", False),
    ],
)
def test_a_wait_in_each_step_is_told_though_it_reads_nothing(line: str, is_told: bool) -> None:
    found = _told("", line)
    assert bool(found) is is_told
    assert all("the host waits for the device, and cannot record the next step" in one for one in found)


_STEP_OF_ITS_OWN = """\
def train_step(batch):
    optimizer.zero_grad()
    out = model(batch.to(device))
    loss = out.sum()
    loss.backward()
    xm.optimizer_step(optimizer)
    return loss
for batch in pl.MpDeviceLoader(loader, device):
    loss = train_step(batch)
    total += loss.item()
"""


@pytest.mark.parametrize(
    ("old", "new", "is_read"),
    [
        ("return loss", "return loss", True),
        ("return loss", "return loss.detach()", True),
        ("return loss", "return loss, loss / 2", True),
        ("return loss", "return {'loss': loss}", False),
        ("return loss", "if skipped:\n        return None\n    return loss", False),
        ("    return loss\n", "", False),
        ("total += loss.item()", "if step % 10 == 0: total += loss.item()", False),
    ],
)
def test_what_a_step_returns_is_read(old: str, new: str, *, is_read: bool) -> None:
    """Where the loop calls a function that computes the gradients."""
    text = HEAD + _STEP_OF_ITS_OWN.replace(old, new)
    last = f"{text.count(chr(10))}: host_read: loss.item() in each step: the host waits"
    assert [one.startswith(last) for one in said(text) if "host_read" in one].count(True) == is_read


def test_a_function_that_exchanges_gradients_is_on_the_device() -> None:
    """Though it names none: it is handed torch_xla's loader, and the model is of a function around it."""
    text = (
        "import torch, torch_xla.core.xla_model as xm\ndef one_epoch(loader):\n    for x, y in loader:\n"
        "        loss = criterion(model(x), y)\n        loss.backward()\n        {}\n        total += loss.item()\n"
    )
    assert [one[:2] for one in said(text.format("xm.optimizer_step(optimizer)")) if "host_read" in one] == [
        "7:"
    ]
    assert [one for one in said(text.format("optimizer.step()")) if "host_read" in one] == []


@pytest.mark.parametrize(
    ("skipped", "is_told"),
    [
        ("step < args.resume_step", True),
        ("args.resume_step is not None and step < args.resume_step", True),
        ("step >= steps_in_epoch", True),
        ("args.resume and epoch == first and step < args.resume_step", True),
        ("step >= last or step < args.resume_step", True),
        ("step < last or not logs", False),
        ("logs is not None and step % 10", False),
        ("time.time() - last < 10", False),
        ("not logs", False),
        ("step != last", False),
    ],
)
def test_what_stands_behind_the_steps_that_a_loop_skips(skipped: str, is_told: bool) -> None:
    """Those before a resumed one, or behind the last, are the few: what follows runs in each of the others."""
    text = f"{HEAD}{STEP}    xm.optimizer_step(optimizer)\n    if {skipped}:\n        continue\n    n += loss.item()\n"
    assert bool(said(text, "host_read")) is is_told


@pytest.mark.parametrize(
    ("other", "is_told"),
    [
        ("else:\n        n = loss.item()", True),
        ("elif few:\n        n = loss.cpu()\n    else:\n        n = loss.tolist()", True),
        ("elif few:\n        n = loss.item()", False),
        ("else:\n        n = 0", False),
    ],
)
def test_a_step_that_reads_in_one_way_or_another(other: str, is_told: bool) -> None:
    """One core reads its own loss, several read their mean: something is read in each step."""
    text = f"{HEAD}{STEP}    if cores > 1:\n        n = mean(loss).item()\n    {other}\n{_STEPPED}"
    assert bool(said(text, "host_read")) is is_told


@pytest.mark.parametrize(
    "reads",
    ["print('loss', loss)", "print('loss %.3f' % loss)", "print('step %d, %f' % (step, loss))",
     "print('{}: {:.3f}'.format(step, loss))", "print('{loss}'.format(loss=loss))",
     "bar.set_description('%s %g' % (step, *loss))"],
)  # fmt: skip
def test_a_text_that_is_made_of_a_tensor(reads: str) -> None:
    """In each step its value is fetched for that; one remark a line."""
    (found,) = said(f"{HEAD}{STEP}    {reads}\n{_STEPPED}", "host_read")
    assert "in each step" in found
    assert (
        said(
            f"{HEAD}{STEP}    {reads.replace('loss)', 'lr)')}\n{_STEPPED}".replace("=loss", "=lr"),
            "host_read",
        )
        == []
    )


@pytest.mark.parametrize(
    ("computed", "reads"),
    [
        ("parts = criterion(out, batch)\n    parts = reduced(parts)", "sum(parts.values()).item()"),
        ("parts = {k: v * w[k] for k, v in criterion(out, batch).items()}", "sum(parts.values()).item()"),
        ("value = model.value(batch)", "(value - 1).abs().mean().item()"),
        ("right, n = accuracy(out, batch)", "right.tolist()"),
        ("first = [one.mean() for one in out]", "first[0].cpu()"),
    ],
)
def test_what_other_functions_make_of_a_tensor(computed: str, reads: str) -> None:
    """DETR's losses, the ratios of PPO: what .item() or .cpu() is called of is a tensor, whoever made it."""
    text = f"{HEAD}{STEP}    {computed}\n    n = {reads}\n{_STEPPED}"
    (found,) = said(text, "host_read")
    assert f"host_read: {reads} in each step" in found
    assert said(text.replace(f"n = {reads}", "print(float(first), value, n)"), "host_read") == []


@pytest.mark.parametrize(
    "computed",
    [
        "parts = measured(out)",
        "parts = f1_score(out.cpu(), batch)",
        "parts = criterion(step)",
    ],
)
def test_what_other_functions_make_of_values(computed: str) -> None:
    """Of one that reads by itself, or is given what is on the host, the result is there, too."""
    reads = "def measured(value):\n    return value.cpu().numpy().mean()\n"
    text = f"{HEAD}{reads}{STEP}    {computed}\n    n = parts.tolist()\n{_STEPPED}"
    assert [one for one in said(text, "host_read") if "tolist" in one] == []


def test_a_loss_that_a_scaler_takes_backward() -> None:
    """As timm's NativeScaler does in fine-tuning scripts: nothing else says that it is a tensor."""
    step = STEP.replace("loss = torch.nn.functional.mse_loss(out, batch)", "loss = criterion(other)")
    step = step.replace("loss.backward()", "loss_scaler(loss, optimizer, parameters=model.parameters())")
    (found,) = said(f"{HEAD}{step}    print(loss)\n{_STEPPED}", "host_read")
    assert "print(loss) in each step" in found


def test_a_distribution_looks_at_its_values() -> None:
    """The largest wait of cleanrl's PPO, and check had nothing of it."""
    imports = "from torch.distributions.categorical import Categorical\nfrom torch.distributions import kl_divergence\n"
    text = f"{HEAD}{imports}{STEP}    kl_divergence(Categorical(logits=out), other)\n{_STEPPED}"
    assert not said(
        text.replace("Categorical(logits=out)", "torch.distributions.TanhTransform(1)"), "host_read"
    )
    (found,) = said(text, "host_read")
    assert "Categorical looks at what it is given" in found
    assert "Categorical(logits=out, validate_args=False), other)" in changed(text)
    once = "torch.distributions.Distribution.set_default_validate_args(False)\ndevice ="
    assert said(text.replace("device =", once, 1), "host_read") == []
    assert said(text.replace("=out)", "=out, validate_args=False)"), "host_read") == []
    assert said(text.replace("logits=out)", "out, None, False)"), "host_read") == []
    assert changed(text.replace("(logits=out)", "(x for x in out)")).count("validate_args") == 0


def test_a_distribution_of_numbers_is_on_the_host() -> None:
    """As mixup draws its share of `Beta(0.2, 0.2)`; a probability is asked for the device's values."""
    drawn = f"{HEAD}{STEP}    d = torch.distributions.Normal(-0.2, scale=1)\n    share = d.{{}}\n{_STEPPED}"
    assert said(drawn.format("sample()"), "Normal looks") == []
    assert len(said(drawn.format("log_prob(out)"), "Normal looks")) == 1
    assert said(drawn.replace("-0.2, scale=1", "").format("log_prob(out)"), "Normal looks") == []


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("total += loss.item()", 1),
        ("stopper.saw(float(loss.detach()))", 1),
        ("total += loss.detach().float()", 0),
        ("print(len(batch))", 0),
    ],
)
def test_accelerates_loop_is_the_scripts_own(line: str, told: int) -> None:
    """accelerate puts model and batches on the device; what the loop reads of them is read in each step."""
    text = (
        "from accelerate import Accelerator\naccelerator = Accelerator()\n"
        "model, optimizer, loader = accelerator.prepare(model, optimizer, loader)\n"
        f"for batch in loader:\n    loss = model(**batch).loss\n    accelerator.backward(loss)\n    {line}\n"
        "    optimizer.step()\n"
    )
    assert [one.split(": ")[0] for one in said(text, "host_read")] == ["7"] * told


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("meter.update(loss.item())", 1),
        ("if step % args.log_interval == 0: meter.update(loss.item())", 0),
        ("if last or step % args.log_interval == 0:\n        meter.update(mean(loss).item())", 0),
    ],
)
@pytest.mark.parametrize("backward", ["value.backward()", "loss_scaler(value, optimizer)"])
def test_a_loss_that_functions_of_the_loop_make_and_take(line: str, told: int, backward: str) -> None:
    """As timm's train.py has it, whose meter is one of averages."""
    text = f"""\
{HEAD}optimizer = torch.optim.SGD(model.parameters())
for step, batch in enumerate(pl.MpDeviceLoader(loader, device)):
    def forward():
        return model(batch), batch
    def backward(value):
        {backward}
    loss, target = forward()
    backward(loss)
    {line}
    xm.optimizer_step(optimizer)
"""
    assert [one[:3] for one in said(text, "host_read")] == ["15:"] * told


@pytest.mark.parametrize("step", ["optimizer.step()", "xm.optimizer_step(optimizer)"])
@pytest.mark.parametrize(
    ("line", "told"), [("total = total.item()", 1), ("if step % 9 == 0: total = total.item()", 0)]
)
def test_a_step_of_several_batches(step: str, line: str, told: int) -> None:
    """What runs around the loop that accumulates gradients, once for each step of the optimizer."""
    text = f"""\
{HEAD}optimizer = torch.optim.SGD(model.parameters())
for step in range(9):
    total = 0
    for batch in pl.MpDeviceLoader(loader, device):
        loss = model(batch)
        total += loss.detach()
        loss.backward()
    {line}
    {step}
"""
    assert [one[:3] for one in said(text, "host_read")] == ["14:"] * told
    inside = text.replace(f"\n    {step}", "").replace("backward()", f"backward()\n        {step}")
    assert said(inside, "host_read") == []  # the loop around is then over epochs
