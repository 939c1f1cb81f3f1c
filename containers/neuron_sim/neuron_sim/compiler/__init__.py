"""Stands in for neuronx-cc and its cache: flags, cache, log lines, but no machine code.

flags           NEURON_CC_FLAGS, checked as neuronx-cc and its wrapper check them
cache           looks up each graph that a job compiles, and adds it
cache_location  where the compile cache is
cache_entry     one graph in the cache: its files, written so that several processes may write at once
unsupported     what neuronx-cc is documented to refuse
analyze_report  the report of `neuron_parallel_compile --command analyze`
log_lines       the form of the Neuron tools' log lines
"""
