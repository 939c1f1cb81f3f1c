#!/bin/bash
# wait-until-up.sh SECONDS: on the head node, wait until slurmctld and sshd answer. An invalid slurm.conf fails at once.
set -u
until said="$(scontrol ping 2>&1)"; [[ "$said" == *"is UP"* ]] && : 2>/dev/null </dev/tcp/127.0.0.1/22; do
    [[ "$said" != *"Parsing error"* ]] || { echo "$said"; exit 1; }
    [ "$SECONDS" -lt "$1" ] || { echo "slurmctld or sshd does not answer after $1 s"; exit 1; }
    sleep 0.1
done
