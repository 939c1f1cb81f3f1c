#!/bin/bash
# name-absent-nodes.sh: on the head node, give all nodes an address in /etc/hosts at which nothing answers. It is used
# for nodes that do not run: the engine's DNS, which knows the running ones, is asked first.
#
# Debian's slurmctld looks an unknown name up ten times, once a second, and sends nothing else meanwhile: a cancelled
# job whose nodes had not started yet would block all other jobs for minutes.
set -eu
hosts="$(grep -v '^255\.255\.255\.255 ' /etc/hosts)"
nodes="$(sed -n 's/^NodeName=\([^ ]*\).*/\1/p' /etc/slurm/slurm.conf | paste -sd,)"
# Written in place: the engine mounts this file, so it cannot be replaced.
{ echo "$hosts"; scontrol show hostnames "$nodes" | sed 's/^/255.255.255.255 /'; } >/etc/hosts
# myhostname answers "localhost" and the node's own name: on a machine without a network, DNS takes 20 s to fail.
sed -i 's/^hosts:.*/hosts: myhostname dns files/' /etc/nsswitch.conf
