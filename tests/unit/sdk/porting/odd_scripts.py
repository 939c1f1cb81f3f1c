"""Valid CUDA scripts as few people write them."""
# ruff: noqa: E501 - their lines are not ours

from __future__ import annotations

LOOP = """\
for epoch in range(2):
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
MADE = """\
model = torch.nn.Linear(3, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=.1)
loader = DataLoader(data, batch_size=8, shuffle=True)
"""
HEAD = "import torch\nfrom torch.utils.data import DataLoader\n"


def _indented(text: str, by: str = "    ") -> str:
    return "".join(by + line for line in text.splitlines(keepends=True))


SCRIPTS = {
    "plain": HEAD + MADE + LOOP,
    "tabs": (HEAD + MADE + LOOP).replace("    ", "\t"),
    "decorator": HEAD + MADE + "@torch.no_grad()\n@cached(device='cuda')\ndef f(x):\n    return x.cuda()\n" + LOOP,
    "class": HEAD + f"""\
class Engine:
    device = torch.device("cuda")
    def __init__(self, data):
{_indented(MADE, "        ")}        self.model, self.loader = model.to(self.device), loader
        self.optimizer = optimizer
    def fit(self):
        for step, (x, y) in enumerate(self.loader):
            loss = self.model(x.cuda()).sum()
            loss.backward()
            self.optimizer.step()
""",
    "lightning": """\
import torch
import lightning as L
class Lit(L.LightningModule):
    def training_step(self, batch, index):
        loss = self(batch.cuda()).sum()
        self.log("loss", loss.item())
        return loss
L.Trainer(accelerator="cuda", devices=1).fit(Lit(), loader)
""",
    "own trainer": HEAD + MADE + """\
class Trainer:
    def step(self, batch): loss = model(batch.cuda()).sum(); loss.backward(); optimizer.step(); return loss
    def train(self):
        for batch in loader: self.step(batch)
Trainer().train()
""",
    "nested functions": HEAD + "def outer(data):\n" + _indented(MADE) + "    def inner():\n" + _indented(LOOP, "        ")
    + "        torch.save(model.state_dict(), 'm.pt')\n    return inner\nouter(data)()\n",
    "semicolons": HEAD.rstrip() + "; import os\nmodel = f().cuda(); optimizer = torch.optim.SGD(model.parameters()); "
    "loader = DataLoader(data, batch_size=8, shuffle=True); n = 0\n"
    "for x in loader: loss = model(x.cuda()).sum(); loss.backward(); optimizer.step(); torch.cuda.synchronize()\n",
    "semicolon after the last import": "import os; import torch; torch.cuda.set_device(0); x = f().cuda()\n",
    "only a statement in a block": "import torch\nif fast:\n    torch.cuda.empty_cache(); torch.cuda.empty_cache()\n"
    "else: torch.cuda.empty_cache()\ntry:\n    torch.cuda.init()\nexcept E: torch.cuda.init()\nfinally:\n"
    "    torch.cuda.set_device(0)\n",
    "match": "import torch\nmatch kind:\n    case 'a':\n        torch.cuda.set_device(0)\n    case _: torch.cuda.init()\n",
    "line continuation": HEAD + MADE.replace("DataLoader(data, ", "\\\n    DataLoader(data, \\\n        ") + LOOP.replace(
        "loss.backward()", "loss \\\n          .backward()"
    ).replace("x.cuda(), ", "x \\\n            .cuda(), "),
    "parentheses": HEAD + MADE.replace(
        "DataLoader(data, batch_size=8, shuffle=True)",
        "(\n    DataLoader(\n        data,  # all\n        batch_size=8,\n        shuffle=True,  # please\n    )\n)",
    ) + LOOP.replace("in loader", "in (loader)").replace("x.cuda()", "(x).cuda(\n            # moved\n        )"),
    "comment in the call": "import torch\nx = f(\n    # cuda\n).cuda(  # here\n    0,  # first\n    non_blocking=True,\n)\n",
    "with": HEAD + MADE + """\
with open("log", "w") as log, torch.cuda.amp.autocast(True), torch.autocast("cuda", torch.float16):
    with (torch.cuda.amp.autocast(enabled=True) as a, open("x") as b):
""" + _indented(LOOP, "        "),
    "scaler": HEAD + MADE + "scaler = torch.cuda.amp.GradScaler()\n" + LOOP.replace(
        "loss.backward()", "scaler.scale(loss / 2).backward()"
    ).replace("optimizer.step()", "scaler.step(optimizer); scaler.update()"),
    "scaler of a class": "import torch\nfrom torch.cuda.amp import (\n    GradScaler,  # scales\n    autocast,\n)\n"
    "class A:\n    def __init__(self):\n        self.scaler = GradScaler()\n    def f(self, loss, o):\n"
    "        with autocast(): pass\n        self.scaler.scale(loss).backward()\n        self.scaler.step(o)\n"
    "        self.scaler.update()\n",
    "scaler, annotated or not at all": "import torch\nscaler: object = torch.cuda.amp.GradScaler()\n"
    "scaler.scale(loss).backward()\nscaler.step(optimizer)\ntorch.cuda.amp.GradScaler().scale(loss).backward()\n"
    "if (s := torch.cuda.amp.GradScaler()): s.update()\n",
    "walrus": HEAD + MADE + LOOP.replace("loss = torch", "(loss := torch").replace("(model(x), y)", "(model(x), y))")
    + "if (device := torch.device('cuda')) and (n := torch.cuda.device_count()) > 1: print(n)\n",
    "async": HEAD + MADE + "async def main():\n    async for x in stream():\n        loss = model(x.cuda()).sum()\n"
    "        loss.backward()\n        optimizer.step()\n    async with lock: torch.cuda.synchronize()\n"
    "    return [x.cuda() async for x in stream()]\n",
    "type comments": HEAD + MADE + "def f(x):  # type: (torch.Tensor) -> torch.Tensor\n    return x.cuda()  # type: ignore\n"
    + LOOP.replace("in loader:", "in loader:  # type: torch.Tensor, torch.Tensor"),
    "f-strings": 'import torch\nx = f().to(f"cuda:{rank}")\nprint(f"{x.cuda()} {torch.device(f\'cuda:{0}\')!r:>{3}}")\n'
    "name = f'cuda {1}'\nwith torch.autocast(f'cuda'): pass\n",
    "f-string of several lines": 'import torch\nprint(f"""é {n}\n  {x.cuda()}  # x\n{{}} {y.cuda()}""" f"{z.cuda()}"\n      f"{x.cuda()}")\n',
    "group in parentheses": HEAD + "from torch.nn.parallel import DistributedDataParallel as DDP\n"
    "torch.distributed.init_process_group(('nccl'), device_id=(torch.device('cuda')))\n"
    "model = DDP((model), device_ids=([0]), output_device=(0),)\nloader = DataLoader((data), batch_size=(8) # )\n)\n" + LOOP,
    "late imports": HEAD + MADE.replace("cuda()", "to(device)").replace("model", "device = torch.device('cuda')\nmodel", 1)
    + "def f(): pass\n" + LOOP + "import torch.fx, os\nprint(os.name)\n",
    "a name too late": "import torch\nx = f().cuda()\nif fast:\n    device = torch.device('cuda')\ny = x.cuda()\ndevice = torch.device('cuda')\n",
    "only names in strings": "import torch\ndevice = 'cuda' if torch.cuda.is_available() else 'cpu'\nmodel.to(device)\n",
    "no import at all": "def f(x):\n    return x.cuda()\n",
    "decorator first": '"""Doc."""\n@cached\ndef f(x):\n    import torch\n    return x.cuda()\n',
    "partly ported": HEAD + "import torch_xla.core.xla_model as xm\n" + MADE.replace(".cuda()", ".to(xm.xla_device())") + LOOP,
    "almost ported": HEAD + "import torch_xla\nimport torch_xla.distributed.parallel_loader as pl\n" + MADE
    + LOOP.replace("in loader", "in pl.MpDeviceLoader(loader, torch_xla.device())"),
    "accelerate": HEAD + "from accelerate import Accelerator\naccelerator = Accelerator()\n" + MADE + LOOP.replace(
        "loss.backward()", "accelerator.backward(loss)"
    ),
    "docstring and future": '"""Trains on cuda."""\nfrom __future__ import annotations\n\n' + HEAD + MADE + LOOP,
    "future and torch in one line": "from __future__ import annotations; import torch\nx = f().cuda()\n",
    "made a Windows file twice": "import torch\r\r\nx = f().cuda()\r\r\n# the end\r\r\n",
    "imports in functions": "def main(data):\n    import torch\n    from torch.utils.data import DataLoader\n"
    + _indented(MADE + LOOP) + "main(data)\n",
    "imports in try": "try:\n    import torch\n    from torch.utils.data import DataLoader\nexcept ImportError:\n    raise\n"
    + MADE + LOOP,
    "star": "from torch import *\nimport torch\nfrom torch.utils.data import *\n" + MADE + LOOP,
    "import in parentheses": "import torch\nfrom torch.utils.data import (\n    DataLoader,  # loads\n    Dataset,\n)\n" + MADE + LOOP,
    "other names": "import torch as t, numpy as pl\nfrom torch.utils.data import DataLoader as Loader\nxm = xr = sampler = 0\n"
    + (MADE + LOOP).replace("torch", "t").replace("DataLoader", "Loader"),
    "conditional expression": HEAD + "dev = 'cuda:0' if torch.cuda.is_available() and not cpu else 'cpu'\n"
    "n = 1 if torch.cuda.is_available() else 0\nassert torch.cuda.is_available(), 'no'; x = 1\n"
    "while not torch.cuda.is_available(): pass\n",
    "lambdas and comprehensions": "import torch\nf = lambda x, device='cuda': x.to(device).cuda()\n"
    "xs = [x.cuda() for x in [y.cuda() for y in ys]]\nd = {'cuda': 'cuda', **{'device': 'cuda'}}\n",
    "settled conditions": "import torch\nif (torch.cuda.is_available()):  # é\n\n    # so\n    x = f(\n  y).cuda()\n"
    "    z = 1; w = 2\n    # behind\nelif other:\n    x = 1\n# before\nelse:\n    x = 2\n"
    "def f():\n    if not torch.cuda.is_available():\n        exit()\n    if a: b\n"
    "    elif (torch.cuda.is_available()): x.cuda()\n    elif c: d\n    else: e\n"
    "    y = (1 if a else 2) if torch.cuda.is_available() else (3, x.cuda())\n"
    "    for one in y:\n        if torch.cuda.is_available(): one.cuda()\n"
    "    if not torch.cuda.is_available(): exit()\n    else: x.cuda()\n"
    "    if torch.cuda.is_available():\n        if torch.cuda.is_available():\n            x.cuda()\n"
    "        else:\n            pass\n",
    "chained": "import torch\na = b = torch.device('cuda')\n(c, d) = torch.device('cuda'), torch.device(type='cuda', index=0)\n"
    "e: torch.device = torch.device('cuda')\nx = g(1).cuda().half().cuda(device=0)\n",
    "one line of everything": HEAD + "for e in range(3):\n  for b in DataLoader(data, 8, True):\n"
    "    loss = model.cuda()(b.cuda()).sum(); loss.backward(); (optimizer.step())\n",
    "wide characters": HEAD + "ü = '日本'; " + MADE + LOOP.replace("mse_loss(model(x), y)", "mse_loss(model(x), y)  # ñ"),
    "form feed": HEAD + "\f\n" + MADE + "\f" + LOOP,
    "main guard": HEAD + "def main():\n" + _indented(MADE + LOOP) + "if __name__ == '__main__': main()\n",
    "ddp": HEAD + "import torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
    "dist.init_process_group(backend='nccl' if torch.cuda.is_available() else 'gloo')\n" + MADE
    + "model = DDP(\n    model,\n    device_ids=[0],  # first\n    output_device=0,\n)\n" + LOOP,
    "loop with else": HEAD + MADE + LOOP.replace("    for x", "    step = 0\n    for x") + "    else:\n        pass\nelse:\n"
    "    torch.cuda.empty_cache()\n",
    "saves of one rank": HEAD + MADE + "torch.distributed.init_process_group('nccl')\n" + LOOP.replace("    for x", "    if (  # one\n"
    "        rank == 0  # of all\n    ): torch.save(model.state_dict(), 'a')\n    for x") + "        if (  # one\n            rank == 0\n"
    "        ):  # alone\n            # all\n            state = {\n                'a': model.state_dict(),  # weights\n            }  # so\n\n"
    "            torch.save(\n                state, 'b'\n            )  # done\n            # end\n        x = 1\n"
    "        if (a or b) \\\n            and rank == 0 and not (\n            c or d): torch.save(model.state_dict(), 'c')\n"
    "\tif a: torch.save(model.state_dict(), 'd')\n\telif is_main(): torch.save(model.state_dict(), 'e')\n".replace("\t", "        "),
    "spaces in odd places": HEAD + MADE + LOOP.replace("loss.backward()", "loss . backward ( )").replace(
        "optimizer.step()", "optimizer . step ( )"
    ).replace("x.cuda()", "x . cuda ( )"),
}  # fmt: skip
