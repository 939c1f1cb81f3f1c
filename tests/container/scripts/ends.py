"""Ends as its first argument says."""

import os
import signal
import sys
import time

import torch_xla

RANK = int(os.environ["RANK"])
how = sys.argv[1]
if how == "as-main":
    import atexit
    import threading

    from saying import say

    if (child := os.fork()) == 0:
        sys.exit(0)
    os.waitpid(child, 0)
    threading.Timer(0.5, lambda: say(last="thread")).start()
    atexit.register(lambda: say(last="exit handler"))
    say(path=os.path.basename(sys.path[0]), main=sys.modules["__main__"].how)
elif how == "raise" and RANK == 1:
    raise ValueError("the reason of rank 1")
elif how == "cuda":
    import torch

    torch.zeros(1).cuda()
elif how == "exit":
    sys.exit(int(sys.argv[2]))
elif how == "message":
    sys.exit("left with a message")
elif how == "argparse":
    import argparse

    argparse.ArgumentParser().parse_args(sys.argv[1:])
elif how == "die":
    os.kill(os.getpid(), signal.SIGKILL)
elif how == "sigterm":
    import atexit

    from saying import say

    def handler(number, frame):
        say(signal=number)
        sys.exit(0)

    atexit.register(lambda: say(left=True))
    signal.signal(signal.SIGTERM, handler)
    say(ready=True)
    time.sleep(600)
elif how == "leave-early":
    import torch
    import torch_xla
    import torch_xla.core.xla_model as xm

    # Without one collective, and with success: nobody else will end rank 0.
    if RANK == 0:
        xm.all_reduce(xm.REDUCE_SUM, torch.ones(2, device=torch_xla.device()))
elif how == "leave-gloo":
    import torch.distributed as dist

    dist.init_process_group("gloo")
    dist.barrier()
    if RANK == 0:
        dist.barrier()
elif how == "die-before-all":
    import torch
    import torch_xla
    import torch_xla.core.xla_model as xm

    if RANK == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    xm.all_reduce(xm.REDUCE_SUM, torch.ones(2, device=torch_xla.device()))
elif how in ("lone-recv", "lone-send"):
    import torch
    import torch_xla
    import torch_xla.core.xla_model as xm

    if RANK == 0:
        (xm.recv if how == "lone-recv" else xm.send)(torch.ones(2, device=torch_xla.device()), 5)
elif how == "mismatch":
    import torch
    import torch_xla
    import torch_xla.core.xla_model as xm

    value = torch.ones(2 + RANK, device=torch_xla.device())
    xm.all_reduce(xm.REDUCE_SUM, value)
