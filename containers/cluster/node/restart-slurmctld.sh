#!/bin/bash
# restart-slurmctld.sh SECONDS: have slurmctld start again, with the state that it saves at its end and other nodes.
set -u
"${0%/*}/name-absent-nodes.sh"
before="$(pgrep -x slurmctld)"
pkill -x slurmctld
while [ -n "$before" ] && [ -e "/proc/$before" ]; do
    [ "$SECONDS" -lt "$1" ] || { echo "slurmctld does not end within $1 s"; exit 1; }
    sleep 0.1
done
exec "${0%/*}/wait-until-up.sh" "$(($1 - SECONDS))"
