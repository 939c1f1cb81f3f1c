"""What a process is like to a script: `show`, as a decorator, writes it down where it stands.

The launcher reads past decorators and definitions when it looks for a script's imports; a call would end that.
"""

import asyncio
import decimal
import faulthandler
import gc
import json
import locale
import logging
import multiprocessing
import os
import random
import resource
import signal
import sys
import threading
import time
import warnings


def show(moment):
    """A JSON line in a file of this rank."""
    shown = {
        "moment": moment.__name__,
        "arguments": arguments(),
        "environment": dict(os.environ),
        "files": files(),
        "interpreter": interpreter(),
        "logging": logging_(),
        "main": main(),
        "path": sys.path,
        "processes": processes(),
        "random": random_(),
        "signals": signals(),
        "streams": streams(),
        "surroundings": surroundings(),
        "threads": threads(),
        "torch": torch_(),
        "warnings": warnings_(),
        "imported before": "transformers" in sys.modules,
    }
    with open(f"{os.environ['SHOW_TO']}.{os.environ['RANK']}", "a") as file:
        file.write(json.dumps(shown, default=repr) + "\n")


def arguments():
    return {
        "argv": sys.argv,
        "orig_argv": sys.orig_argv,
        "flags": str(sys.flags),
        "executable": [sys.executable, sys.prefix, sys._xoptions, sys.warnoptions],
    }


def files():
    links = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            links[number] = [
                os.readlink(f"/proc/self/fd/{number}").partition(":")[0],
                os.get_inheritable(int(number)),
            ]
        except OSError:  # the one of the listing
            continue
    return links


def interpreter():
    return {
        "gc": [gc.isenabled(), gc.get_threshold(), gc.get_debug(), [named(one) for one in gc.callbacks]],
        "frozen": gc.get_freeze_count() > 0,
        "locale": [
            locale.setlocale(locale.LC_ALL),
            locale.getpreferredencoding(),
            sys.getfilesystemencoding(),
        ],
        "time": [time.tzname, time.timezone],
        "decimal": repr(decimal.getcontext()),
        "finders": [named(one) if isinstance(one, type) else type(one).__name__ for one in sys.meta_path],
        "path hooks": [named(one) for one in sys.path_hooks],
        "faulthandler": faulthandler.is_enabled(),
        "limits": [sys.getrecursionlimit(), sys.getswitchinterval(), sys.get_int_max_str_digits()],
        "asyncio": [type(asyncio.get_event_loop_policy()).__name__, asyncio._get_running_loop()],
        "hooks": [
            named(one)
            for one in (sys.excepthook, sys.displayhook, sys.unraisablehook, __import__, print, open)
        ],
        "replaced": {
            one: named(getattr(owner, one))
            for owner, one in ((os, "putenv"), (os, "sched_getaffinity"), (os, "kill"), (signal, "signal"))
        },
        "bytecode": [sys.dont_write_bytecode, sys.pycache_prefix],
    }


def logging_():
    loggers = logging.root.manager.loggerDict.items()
    return {
        "root": logger_state(logging.root),
        "loggers": {name: logger_state(one) for name, one in loggers if isinstance(one, logging.Logger)},
        "disabled": logging.root.manager.disable,
        "captures warnings": logging._warnings_showwarning is not None,
        "classes": [
            named(logging.getLoggerClass()),
            named(logging.getLogRecordFactory()),
            logging.raiseExceptions,
        ],
        "levels": logging.getLevelNamesMapping(),
    }


def logger_state(logger):
    handlers = [
        [
            type(one).__name__,
            one.level,
            getattr(getattr(one, "stream", None), "name", None),
            one.formatter and [one.formatter._fmt, one.formatter.datefmt],
        ]
        for one in logger.handlers
    ]
    return [logger.level, handlers, logger.propagate, logger.disabled]


def main():
    module = sys.modules["__main__"]
    given = {name: value for name, value in vars(module).items() if name.startswith("__")}
    given["__builtins__"] = type(given["__builtins__"]).__name__
    given["__loader__"] = type(given["__loader__"]).__name__
    return given


def named(it):
    return getattr(it, "__qualname__", None) or getattr(it, "name", None) or repr(it)


def processes():
    me = multiprocessing.current_process()
    return {
        "method": multiprocessing.get_start_method(allow_none=True),
        "me": [me.name, me.daemon, me._identity, sorted(me._config)],
        "others": [multiprocessing.parent_process(), multiprocessing.active_children()],
    }


def random_():
    state = {"random": str(random.getstate())}
    if "numpy" in sys.modules:
        state["numpy"] = str(sys.modules["numpy"].random.get_state()[1].tobytes())
    if "torch" in sys.modules:
        state["torch"] = str(sys.modules["torch"].get_rng_state().tolist())
    return state


def signals():
    wakeup = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(wakeup)
    return {
        "handlers": {
            str(number): named(signal.getsignal(number))
            for number in signal.valid_signals()
            if number < signal.SIGRTMIN
        },
        "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "rest": [wakeup, signal.getitimer(signal.ITIMER_REAL)],
    }


def streams():
    return {
        name: {
            "is": [
                stream.name,
                stream.mode,
                stream.encoding,
                stream.errors,
                stream.closed,
                type(stream.buffer).__name__,
            ],
            "original": stream is getattr(sys, f"__{name}__"),
            "buffering": [stream.line_buffering, stream.write_through],
        }
        for name, stream in (("stdin", sys.stdin), ("stdout", sys.stdout), ("stderr", sys.stderr))
    }


def surroundings():
    umask = os.umask(0)
    os.umask(umask)
    kinds = [kind for kind in dir(resource) if kind.startswith("RLIMIT")]
    return {
        "folder": os.getcwd(),
        "umask": umask,
        "nice": os.nice(0),
        "processors": sorted(os.sched_getaffinity(0)),
        "leads": [os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid()],
        "limits": {kind: resource.getrlimit(getattr(resource, kind)) for kind in kinds},
    }


def threads():
    me = threading.current_thread()
    return {
        "python": [one.name for one in threading.enumerate()],
        "main": [me is threading.main_thread(), me.native_id == os.getpid()],
        "kernel's": len(os.listdir("/proc/self/task")),
        "rest": [threading.stack_size(), named(threading.excepthook), sys.gettrace(), sys.getprofile()],
    }


def torch_():
    if (torch := sys.modules.get("torch")) is None:
        return {}
    return {
        "default": [str(torch.get_default_dtype()), str(torch.get_default_device())],
        "threads": [torch.get_num_threads(), torch.get_num_interop_threads()],
        "grad": [torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_anomaly_enabled()],
        "precision": [torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision()],
        "autocast": [torch.is_autocast_enabled("cpu"), str(torch.get_autocast_dtype("cpu"))],
        "rest": [torch.multiprocessing.get_sharing_strategy(), torch.distributed.is_initialized()],
    }


def warnings_():
    return {
        "filters": [
            [action, getattr(text, "pattern", text), kind.__name__, getattr(module, "pattern", module), line]
            for action, text, kind, module, line in warnings.filters
        ],
        "shown by": named(warnings.showwarning),
        "once": [warnings.defaultaction, sorted(map(str, warnings.onceregistry))],
    }
