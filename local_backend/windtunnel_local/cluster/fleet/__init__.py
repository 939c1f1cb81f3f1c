"""The background process of one cluster: makes, keeps, changes and deletes its containers.

client.py      how commands start and ask it
__main__.py    the process: ``python -m windtunnel_local.cluster.fleet FOLDER``
process.py     what it does with orders and states
steps.py       creating, updating, starting, stopping, deleting
keeper.py      which compute nodes run
slurm.py       Slurm's own commands
listening.py   the sockets
orders.py      what may be asked there
"""

from windtunnel_local.cluster.fleet.client import Processes

__all__ = ["Processes"]
