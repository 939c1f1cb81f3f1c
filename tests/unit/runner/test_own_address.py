"""Where a container is called: past the engine's proxy, if its bridge is this machine's."""

from __future__ import annotations

from windtunnel_local.runner.docker.networks import own_address


def test_a_bridge_of_another_machine_is_no_way() -> None:
    """As of an engine in a virtual machine: its addresses may be somebody else's here."""
    elsewhere = {"NetworkID": "0123456789abcdef", "IPAddress": "172.17.0.2"}
    assert own_address([elsewhere]) is None
    assert own_address([]) is None
