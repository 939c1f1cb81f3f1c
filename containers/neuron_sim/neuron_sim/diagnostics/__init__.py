"""What to change before Trainium: found while a script runs on the simulated device.

watch        told of graphs, steps, batches and readings; warns, and sums up at the end
findings     what was found, each once a line; its order and its words in the log (pure)
advice       messages and what to do (pure)
for_graphs   those on graphs that compile (pure)
for_cores    those of several cores (pure)
for_operations  those of operations that XLA lacks, or gets wrong (pure)
for_library  what to change where a library does it, not the script (pure)
recompiles   decides from graphs and batches which recompilations are worth a warning (pure)
host_reads   `.item()`, `print(tensor)`, `if tensor:`, `.cpu()`: which line, how often
fallbacks    operations that XLA lacks: which line, how often
host_training  a model that trains on the CPU
meeting      where the cores of a host leave what they compare
same_data    those that train on the same batches
unequal_weights  those that train other weights
by_hand      weights that a script changes without an optimizer
untied       weights that were one, and became several on the device
wrong_splits  pieces of a tensor that are other ones on trn1
loaders      which loader made a batch, on which line
progress     what a short rehearsal is at, where a step takes long
log          how the simulator speaks in the job's log
batch_sizes  how large a loader's batches are (pure)
"""
