"""What of a thread's CPU time is the script's, and what the simulator's own."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings

from neuron_sim.counters.script_time import ScriptTime, clock

BUSY = 0.06


def work() -> None:
    """Keep this thread's processor busy for `BUSY` seconds."""
    until = time.thread_time() + BUSY
    while time.thread_time() < until:
        pass


def test_work_counts_and_waiting_does_not() -> None:
    """CPU seconds since the last look, whatever else the machine does."""
    clock = ScriptTime()
    work()
    time.sleep(2 * BUSY)
    assert BUSY <= clock.take() < 1.5 * BUSY
    assert clock.take() < BUSY / 2


def test_what_is_set_aside_does_not_count_but_the_scripts_part_in_it_does() -> None:
    """Blocks may lie in each other, and end with an error."""
    clock = ScriptTime()
    with contextlib.suppress(KeyError), clock.spent(ours=True):
        work()
        with clock.spent(ours=True):
            work()
        with clock.spent(ours=False):
            work()
        work()
        raise KeyError
    work()
    assert 2 * BUSY <= clock.take() < 2.5 * BUSY


def test_a_look_from_within_the_simulators_own_work_leaves_that_out() -> None:
    """As at a step's end."""
    clock = ScriptTime()
    work()
    with clock.spent(ours=True):
        work()
        assert BUSY <= clock.take() < 1.5 * BUSY
        work()
    assert clock.take() < BUSY / 2


def test_other_threads_change_nothing() -> None:
    """A loader's thread calls what is set aside, too."""
    clock = ScriptTime()

    def elsewhere() -> None:
        with clock.spent(ours=True):
            work()

    thread = threading.Thread(target=elsewhere)
    thread.start()
    work()
    thread.join()
    assert BUSY <= clock.take() < 1.5 * BUSY


def test_a_thread_that_works_for_the_script_counts_too() -> None:
    """Autograd has one for the backward pass of each device; what it does aside does not count."""
    clock = ScriptTime()
    done, leave = threading.Event(), threading.Event()

    def autograd() -> None:
        clock.follow()
        work()
        with clock.spent(ours=True):
            work()
        done.set()
        leave.wait()

    thread = threading.Thread(target=autograd)
    thread.start()
    done.wait()
    counted = clock.take()
    leave.set()
    thread.join()
    assert BUSY <= counted < 1.5 * BUSY
    work()
    assert BUSY <= clock.take() < 1.5 * BUSY  # that the other thread has ended does no harm


def test_a_process_that_the_script_forks_has_a_clock_of_its_own() -> None:
    """Where it iterates over a loader, say, which is set aside in part."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # this process may have threads of the tests' own
        child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(OSError), clock.spent(ours=True):
            code = 0
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
