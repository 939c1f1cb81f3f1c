"""A cluster's file of the shape that AWS's post has, and a fleet without containers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from windtunnel_local.cluster.layout import Layout
from windtunnel_local.cluster.record import ClusterRecord, HeadNode, create, now
from windtunnel_local.service.ground.errors import RunnerUnavailable

POST = """\
Region: us-west-2
Image:
  Os: ubuntu2004
HeadNode:
  InstanceType: c5.4xlarge
  Networking:
    SubnetId: subnet-0123456789abcdef0
  Ssh:
    KeyName: rehearsal
  LocalStorage:
    RootVolume:
      Size: 1024
  CustomActions:
    OnNodeConfigured:
      Script: s3://our-bucket/install.sh
  Iam:
    S3Access:
      - BucketName: our-bucket
        EnableWriteAccess: false
Scheduling:
  Scheduler: slurm
  SlurmQueues:
    - Name: compute1
      CapacityType: ONDEMAND
      ComputeSettings:
        LocalStorage:
          RootVolume:
            Size: 1024
          EphemeralVolume:
            MountDir: /local_storage
      ComputeResources:
        - Name: queue1-i1
          InstanceType: trn1.32xlarge
          MinCount: 1
          MaxCount: 16
          Efa:
            Enabled: true
      Networking:
        SubnetIds:
          - subnet-0123456789abcdef1
        PlacementGroup:
          Enabled: true
SharedStorage:
  - Name: pclusterfsx
    StorageType: FsxLustre
    MountDir: /fsx
    FsxLustreSettings:
      DeploymentType: SCRATCH_2
      StorageCapacity: 1200
"""

_BOTH = {"launchTime": "2026-01-01T00:00:00.000Z", "state": "running", "privateIpAddress": "172.18.0.3"}
_INSTANCES = [
    {
        **_BOTH,
        "instanceId": "i-0123456789abcdef0",
        "instanceType": "c5.4xlarge",
        "nodeType": "HeadNode",
        "nodeName": "head",
        "queueName": "",
    },
    {
        **_BOTH,
        "instanceId": "i-0123456789abcdef1",
        "instanceType": "trn1.32xlarge",
        "nodeType": "ComputeNode",
        "nodeName": "compute1-st-queue1-i1-1",
        "queueName": "compute1",
    },
]


def cluster_at(home: Path, name: str = "post") -> Layout:
    """The folder of a cluster that was created and runs, as its background process would have written it."""
    made = create(home, name, POST, "cluster.yaml", "us-west-2")
    FleetWithoutContainers().start(made.folder)
    layout = Layout(made.folder)
    for folder in (layout.slurm_state, layout.jobs):
        folder.mkdir(parents=True)
    return layout


def submit(layout: Layout, job: int, name: str, nodes: tuple[str, ...] = ()) -> None:
    """What Slurm keeps of a batch job that waits; with ``nodes`` it has begun there."""
    kept = layout.slurm_state / f"hash.{job % 10}" / f"job.{job}"
    kept.mkdir(parents=True)
    (kept / "script").write_text("#!/bin/sh\n")
    words = ["SHELL=/bin/bash", f"SLURM_JOB_NAME={name}", "LAST=1"]
    (kept / "environment").write_bytes(b"\x03\0\0\0" + "".join(f"{word}\0" for word in words).encode())
    for node in nodes:
        (layout.jobs / str(job) / node).mkdir(parents=True)


class FleetWithoutContainers:
    """Writes the states that the background process would write, at once and to the end."""

    def __init__(self, *, engine: bool = True) -> None:
        """``engine``: whether there is one."""
        self._engine = engine
        self.orders: list[str] = []
        self.started: list[Path] = []

    def check(self) -> None:
        """Raises where there is no engine."""
        if not self._engine:
            raise RunnerUnavailable("No Docker engine answers.")

    def start(self, folder: Path) -> None:
        """Create what is to be created."""
        self.started.append(folder)
        record = ClusterRecord(folder)
        if record.status == "CREATE_IN_PROGRESS":
            record.set_head_node(HeadNode("i-0123456789abcdef0", now(), "172.18.0.2"))
            record.set_fleet("RUNNING")
            record.move_to("CREATE_COMPLETE")

    def call(self, folder: Path, order: dict[str, Any]) -> dict[str, Any]:
        """Do it."""
        self.orders.append(order["do"])
        record = ClusterRecord(folder)
        if order["do"] == "instances":
            return {"instances": _INSTANCES}
        if order["do"] == "delete":
            record.move_to("DELETE_IN_PROGRESS")
            record.remove()
        elif order["do"] == "update":
            record.move_to("UPDATE_IN_PROGRESS")
            record.next_configuration()
            record.take_update()
            record.move_to("UPDATE_COMPLETE")
        else:
            record.set_fleet("RUNNING" if order["do"] == "start-fleet" else "STOPPED")
        return {}
