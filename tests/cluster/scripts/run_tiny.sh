#!/usr/bin/env bash
# Of the same shape as AWS's launch scripts of data-parallel training under Slurm; the model is tiny.
set -o pipefail

TOKEN=$(curl -sS -m 60 -X PUT "http://169.254.169.254/latest/api/token" -H "X-aws-ec2-metadata-token-ttl-seconds: 600")
INSTANCE=$(curl -sS -m 60 -H "X-aws-ec2-metadata-token: $TOKEN" http://169.254.169.254/latest/meta-data/instance-type)

CORES=$(/opt/aws/neuron/bin/neuron-ls -j | jq 'length * .[0].nc_count')
GRAD_ACCUM=8
STEPS=3
LOG=log_tiny
[ -z "$NEURON_EXTRACT_GRAPHS_ONLY" ] || { STEPS=1 LOG=${LOG}_compile; }

export FI_EFA_USE_DEVICE_RDMA=1 FI_PROVIDER=efa FI_EFA_FORK_SAFE=1
MASTER_ADDR=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
DISTRIBUTED="--nproc_per_node $CORES --nnodes $SLURM_NTASKS --node_rank $SLURM_NODEID"
DISTRIBUTED="$DISTRIBUTED --master_addr ${MASTER_ADDR[0]} --master_port 2022"
OUTPUT=output_$SLURM_JOB_ID
export NEURON_CC_FLAGS="--cache_dir=$HOME/neuron_cache/tiny/$(hostname)"
mkdir -p "$OUTPUT"
echo "Hostname: $(hostname) (instance type: $INSTANCE, $CORES cores)"

sudo sysctl -w net.ipv4.ip_local_reserved_ports=48620 || exit 1
torchrun $DISTRIBUTED train_tiny.py --steps $STEPS --grad_accum $((GRAD_ACCUM / SLURM_NTASKS)) \
    --metrics_file "$OUTPUT/results.json" |& tee "$OUTPUT/${LOG}_${SLURM_NODEID}_$SLURM_NTASKS"
exit "${PIPESTATUS[0]}"
