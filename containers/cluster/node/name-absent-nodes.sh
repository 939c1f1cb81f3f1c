#!/bin/bash
# name-absent-nodes.sh: on the head node, give each node that does not run an address at which nobody answers.
#
# Debian's slurmctld asks ten times, a second apart, for a name that nobody knows, and whatever else it has to send
# waits: a cancelled job whose nodes were still to come would hold up all others for minutes. The engine's DNS, which
# knows the nodes that run, is asked first.
set -eu
hosts="$(grep -v '^255\.255\.255\.255 ' /etc/hosts)"
nodes="$(sed -n 's/^NodeName=\([^ ]*\).*/\1/p' /etc/slurm/slurm.conf | paste -sd,)"
# Written in place: it is the engine's mount.
{ echo "$hosts"; scontrol show hostnames "$nodes" | sed 's/^/255.255.255.255 /'; } >/etc/hosts
# "localhost" and the node's own name need no DNS: that of a machine without a network takes 20 s to say so.
sed -i 's/^hosts:.*/hosts: myhostname dns files/' /etc/nsswitch.conf
