"""Finds what to change before Trainium, while a script runs on the simulated device.

watch        gets graphs, steps, batches and reads; warns in the log, and sums up at the end
findings     all findings, one per cause and line; their order and text in the log (pure)
advice       texts of findings: what happens and what to do (pure)
for_graphs   texts about graphs that compile (pure)
for_cores    texts about several cores (pure)
for_operations  texts about operations that XLA lacks, or gets wrong (pure)
for_library  what to change if a library does it, not the script (pure)
recompiles   decides from graphs and batches which recompilations are worth a warning (pure)
host_reads   `.item()`, `print(tensor)`, `if tensor:`, `.cpu()`: which line, how often
read_steps   in how many steps of its loop a line has read (pure)
fallbacks    operations that XLA lacks: which line, how often
host_training  a model that trains on the CPU
meeting      files by which the cores of a host compare something
same_data    cores that train on the same batches
exchanges    cores that exchange neither gradients nor weights
unequal_weights  cores that began with different weights
running_statistics  cores that end with different statistics of BatchNorm
gradients    weights that never get a gradient
by_hand      weights that a script changes without an optimizer
untied       tied weights that became separate ones on the device
wrong_splits  splits of a tensor that give other values on trn1
loaders      which loader made a batch, on which line
progress     reports what a short rehearsal is doing if a step takes long
log          writes the simulator's lines into the job's log
batch_sizes  how large a loader's batches are (pure)
"""
