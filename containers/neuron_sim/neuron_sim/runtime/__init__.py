"""Which process holds which simulated core, and what it does there.

lifetime      a process joins its peers, claims its cores at the first use of the device, and leaves
spawning      `xmp.spawn` and `torch_xla.launch`: each process they start is a core
ray_workers   Ray Train's workers: each is a core while its training function runs
cores         what a process asks for: NEURON_RT_VISIBLE_CORES, NEURON_RT_NUM_CORES
claims        the locks of cores: each is held by one process, and freed when that dies
busy_message  which processes prevent a claim, and what to do
usage         what each core's process did so far, in a small file for the tools
usage_reader  reads these files in other processes
event_files   the counters of the first core of a host as TensorBoard event files
"""
