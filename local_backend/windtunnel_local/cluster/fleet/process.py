"""A cluster's background process: takes orders, carries out their steps one at a time, and writes the states."""

from __future__ import annotations

import logging
import queue
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from windtunnel_local.cluster.errors import BadRequest, ClusterError, ClusterNotFound
from windtunnel_local.cluster.fleet.listening import listen
from windtunnel_local.cluster.fleet.orders import COMMANDS, POWER, Order, read_order
from windtunnel_local.cluster.fleet.steps import Abandoned, Steps, instance_id
from windtunnel_local.cluster.layout import Layout
from windtunnel_local.cluster.record import WORKING
from windtunnel_local.cluster.slurm_conf import HEAD
from windtunnel_local.service.ground.errors import WindtunnelError

_FAILED = ("CREATE_FAILED", "DELETE_FAILED")
_LEFT_ALONE_S = 60.0
"""Seconds after which the process of a failed cluster ends; the next command starts it again."""
log = logging.getLogger("windtunnel.cluster")

Step = Callable[[], None]


class Fleet:
    def __init__(self, layout: Layout, steps: Steps) -> None:
        self._layout = layout
        self._steps = steps
        self._record = self._steps.record
        # A put from a signal's handler must not wait for a get that it interrupts.
        self._queue: queue.SimpleQueue[Step | None] = queue.SimpleQueue()

    def leave(self) -> None:
        """End the process after the present step; the cluster runs on. May be called by a signal handler."""
        self._queue.put(None)

    def run(self) -> None:
        """Finish what an earlier process has begun, then carry out orders. Blocks."""
        layout = self._layout
        layout.orders.mkdir(mode=0o700, exist_ok=True)
        for interrupted in self._interrupted():
            self._queue.put(interrupted)
        sockets = [
            listen(layout.socket, lambda line: self._answer(line, COMMANDS)),
            listen(layout.orders / "socket", lambda line: self._answer(line, POWER), self._steps.owner),
        ]
        try:
            while (step := self._next()) is not None:
                step()
        except ClusterNotFound:  # its folder is gone, just now deleted, or another cluster's
            if not layout.folder.exists():
                with suppress(WindtunnelError):
                    self._steps.nodes.remove_all()
        finally:
            self._steps.keeper.end()
            for each in sockets:
                each.close()

    def _next(self) -> Step | None:
        while True:
            try:
                return self._queue.get(timeout=_LEFT_ALONE_S)
            except queue.Empty:
                self._steps.need_own_folder()
                if self._record.status in _FAILED:
                    return None

    def _interrupted(self) -> Iterator[Step]:
        """The step that an earlier process had begun."""
        state = self._record.state
        if state.status == "CREATE_IN_PROGRESS":
            yield self._create
        elif state.status == "DELETE_IN_PROGRESS":
            yield self._delete
        elif state.status not in _FAILED:
            yield self._go_on
            if state.status == "UPDATE_IN_PROGRESS":
                yield self._update
            if state.fleet_status in ("STOP_REQUESTED", "STOPPING"):
                yield self._stop
            if state.fleet_status in ("START_REQUESTED", "STARTING"):
                yield self._start

    # --- orders ---

    def _answer(self, line: bytes, allowed: tuple[str, ...]) -> dict[str, Any]:
        order = read_order(line, allowed, self._steps.configuration.instance_types)
        return self._power(order) if order.do in POWER else self._command(order)

    def _power(self, order: Order) -> dict[str, Any]:
        log.info("%s %s", order.do, " ".join(order.nodes))
        change = self._steps.keeper.want if order.do == "resume" else self._steps.keeper.unwant
        change(order.nodes)
        return {"done": True}

    def _command(self, order: Order) -> dict[str, Any]:
        log.info("%s", order.do)
        if order.do == "instances":
            return {"instances": self._instances()}
        if order.do == "delete":
            self._record.move_to("DELETE_IN_PROGRESS")
            self._steps.deleting.set()
            self._queue.put(self._delete)
        elif order.do == "update":
            self._record.move_to("UPDATE_IN_PROGRESS")
            self._queue.put(self._update)
        else:
            starts = order.do == "start-fleet"
            self._need_working()
            self._record.set_fleet("START_REQUESTED" if starts else "STOP_REQUESTED")
            self._queue.put(self._start if starts else self._stop)
        state = self._record.state
        return {"status": state.status, "fleet_status": state.fleet_status}

    def _need_working(self) -> None:
        status = self._record.status
        if status not in WORKING:
            raise BadRequest(
                f"the compute fleet cannot be started or stopped while the cluster is in {status}."
            )

    def _instances(self) -> list[dict[str, str]]:
        queues = {node.name: queue.name for queue, _, node in self._steps.configuration.nodes()}
        return [
            {
                "instanceId": instance_id(node),
                "instanceType": node.instance_type,
                "launchTime": node.launched,
                "nodeType": "HeadNode" if name == HEAD else "ComputeNode",
                "nodeName": name,
                "privateIpAddress": node.address,
                "queueName": queues.get(name, ""),
                "state": "running" if node.state == "running" else "pending",
            }
            for name, node in sorted(self._steps.nodes.found().items())
        ]

    # --- steps, with the states that they lead to ---

    def _create(self) -> None:
        try:
            self._steps.create()
            self._record.move_to("CREATE_COMPLETE")
            log.info("created")
        except (Abandoned, ClusterNotFound):
            return
        except Exception as error:  # whatever it is, nothing is left of the try
            log.exception("the creation failed")
            failure = self._steps.roll_back(error)
            if not self._steps.deleting.is_set():
                self._record.move_to("CREATE_FAILED", failure)

    def _go_on(self) -> None:
        try:
            self._steps.go_on()
            log.info("taken over")
        except ClusterNotFound:
            raise
        except (WindtunnelError, OSError) as error:
            log.warning("not yet taken over: %s", error)
            self._steps.keeper.begin()  # which tries again

    def _update(self) -> None:
        try:
            self._steps.update()
            self._record.move_to("UPDATE_COMPLETE")
        except (Abandoned, ClusterNotFound):
            return
        except Exception as error:  # whatever it is, the next process must not begin it again
            log.exception("the update failed")
            if not self._steps.deleting.is_set():
                self._record.move_to("UPDATE_FAILED", str(error))

    def _stop(self) -> None:
        self._change_fleet(self._steps.stop_fleet)

    def _start(self) -> None:
        self._change_fleet(self._steps.start_fleet)

    def _change_fleet(self, step: Step) -> None:
        try:
            step()
        except (Abandoned, ClusterNotFound):
            return
        except (WindtunnelError, OSError):
            log.exception("the compute fleet's state is unknown")
            self._record.set_fleet("UNKNOWN")

    def _delete(self) -> None:
        try:
            self._steps.delete()
        except ClusterNotFound:
            raise
        except (WindtunnelError, OSError) as error:
            log.exception("the cluster is not deleted")
            with suppress(ClusterError):
                self._record.move_to("DELETE_FAILED", str(error))
        else:
            log.info("deleted")
            self.leave()
