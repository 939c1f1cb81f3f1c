"""What Trainium would tell too late: found while a script runs on the simulated device.

findings    what was found, each once a line; its order and its words in the log (pure)
advice      messages and what to do (pure)
recompiles  decides from graphs and batches which recompilations are worth a warning (pure)
host_reads  `.item()`, `print(tensor)`, `if tensor:`, `.cpu()`: which line, how often
loaders     which loader made a batch, on which line; batch_sizes: how large its batches are (pure)
watch       joins them: listens to the recorder, warns, sums up at the end
"""
