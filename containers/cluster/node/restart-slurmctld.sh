#!/bin/bash
# restart-slurmctld.sh SECONDS: end slurmctld, which start.sh then starts again with its saved state and the new list
# of nodes. Waits SECONDS at most.
set -u
"${0%/*}/name-absent-nodes.sh"
before="$(pgrep -x slurmctld)"
pkill -x slurmctld
while [ -n "$before" ] && [ -e "/proc/$before" ]; do
    [ "$SECONDS" -lt "$1" ] || { echo "slurmctld does not end within $1 s"; exit 1; }
    sleep 0.1
done
exec "${0%/*}/wait-until-up.sh" "$(($1 - SECONDS))"
