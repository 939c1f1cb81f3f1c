#!/usr/bin/env bash
# A node's part of the job, as AWS's launch scripts under Slurm have it. Arguments: those of cluster_bert.py.
set -eo pipefail

CORES=$(/opt/aws/neuron/bin/neuron-ls -j | jq 'length * .[0].nc_count')
MASTER_ADDR=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
torchrun --nproc_per_node "$CORES" --nnodes "$SLURM_NTASKS" --node_rank "$SLURM_NODEID" \
    --master_addr "${MASTER_ADDR[0]}" --master_port 2022 "$(dirname "$0")/cluster_bert.py" "$@"
