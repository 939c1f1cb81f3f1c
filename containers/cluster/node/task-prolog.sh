#!/bin/sh
# TaskProlog: gives every task of a job the node's own variables; the others come from the shell that submitted the job.
counters="/opt/windtunnel/jobs/$SLURM_JOB_ID/$SLURMD_NODENAME"
mkdir -p "$counters"
sed 's/^/export /' /etc/environment
echo "export WINDTUNNEL_COUNTERS_DIR=$counters"
