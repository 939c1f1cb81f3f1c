"""Which process holds which simulated core, and what it does there.

lifetime      a process joins its peers, claims its cores at the first use of the device, and leaves
spawning      `xmp.spawn` and `torch_xla.launch`: each process they start is a core
ray_workers   Ray Train's: each is a core while its training function runs
cores         what a process asks for: NEURON_RT_VISIBLE_CORES, NEURON_RT_NUM_CORES
claims        a core held by one process is refused to another, and freed when that dies
busy_message  who is in the way of a claim, and what to do
usage         what each core's process did so far, in a small file for the tools
usage_reader  the same, read from outside of those processes
event_files   the counters of the first core of a host as TensorBoard event files
"""
