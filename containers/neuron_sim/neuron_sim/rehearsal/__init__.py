"""A short rehearsal: the script as it is, but each pass over a loader ends early.

passes        where a pass ends, and when the script has shown enough (pure)
loops         what the loop around a batch says of its own length (pure)
own_steps     steps of a script that loops over no loader
turns         what the loop around the passes says of them (pure)
iterators     what lies between the loop and its loader
loader_facts  what a loader says of itself
"""
