"""What Trainium would tell too late: found while a script runs on the simulated device.

compare     why a graph is new, against the closest earlier one: two HLO texts (pure)
findings    what was found, each once a line; its order and its words in the log (pure)
advice      messages and what to do (pure)
recompiles  decides from graphs and batches which recompilations are worth a warning (pure)
ledger      every graph of the job and why it is new
host_reads  `.item()`, `print(tensor)`, `if tensor:`, `.cpu()`: which line, how often
batches     which loader made a batch, on which line, how large it was
watch       joins them: listens to the recorder, warns, sums up at the end
"""
