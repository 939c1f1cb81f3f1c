"""A short rehearsal: the script as it is, but each pass over a loader ends early.

passes        where a pass ends, and when the script has shown enough (pure)
loops         reads how long the loop around a batch would be (pure)
own_steps     steps of a script that loops over no loader
turns         reads how many passes the loop around them would make (pure)
iterators     finds zip and itertools between the loop and its loader
loader_facts  reads a loader's length, batch size and sampler
"""
