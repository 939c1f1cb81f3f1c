"""What stands where neuronx-cc and its cache stand: flags, cache, log lines, no machine code.

flags     NEURON_CC_FLAGS, checked as neuronx-cc and its wrapper check them
location  where the compile cache is
entry     one graph in the cache: its files, written so that several processes may write at once
cache     looks up each graph that a job compiles, and enters it
support   what neuronx-cc is documented to refuse
analysis  the report of `neuron_parallel_compile --command analyze`
log       the form of the Neuron tools' log lines
"""
