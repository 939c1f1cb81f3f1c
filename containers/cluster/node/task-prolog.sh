#!/bin/sh
# TaskProlog: what every task of a job gets of the node it runs on; the rest it has from who submitted it.
counters="/opt/windtunnel/jobs/$SLURM_JOB_ID/$SLURMD_NODENAME"
mkdir -p "$counters"
sed 's/^/export /' /etc/environment
echo "export WINDTUNNEL_COUNTERS_DIR=$counters"
