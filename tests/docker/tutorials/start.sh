#!/bin/bash
# A job that brings its own start: torchrun on as many cores as this instance has.
set -euo pipefail
cd "$(dirname "$0")"
cores=$(neuron-ls -j | python3 -c 'import json, sys; print(sum(device["nc_count"] for device in json.load(sys.stdin)))')
export NEURON_CC_FLAGS="--model-type=transformer --retry_failed_compilation"
torchrun --nproc_per_node="$cores" mlp_torchrun.py --epochs 2 --batch_size 16
echo "start.sh: torchrun has ended with $?"
