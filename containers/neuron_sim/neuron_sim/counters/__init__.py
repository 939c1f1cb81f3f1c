"""Counts what runs, while it runs. Knows no price and no other machine's clock.

recorder      writes a record for each step, graph, start and end; tells its listeners of steps and graphs
listener      the base class of the recorder's listeners
wholes        which graphs are pieces of one graph on trn1
records       the JSON-lines file of one rank, and its records
graphs        which graph ran: torch_xla's own execution analysis, and each graph's cost
hlo           the work of a graph by class, from its HLO text
why_new       why a graph is new, against the closest earlier one: two HLO texts (pure)
launches      operations that a GPU's host launches one by one
attention     what scaled_dot_product_attention computes
parameters    bytes of parameters, gradients and optimizer state
modules       a model's parameters, also where its class has a method of its own for them
batches       how many samples came from the input pipeline, and how long the loop waited for them
called        how many samples a batch has that the script makes on the device
script_lines  the line of the user's script that is running
script_time   CPU time of the script's thread, without the simulator's own
pending_reads values that the script read while they were pending, and what that cost the step
early_results  values read after a collective or the end of a step: what that costs on trn1
model_parallel  which cores share one copy of the model
host_reference  a fixed piece of work that seconds of tracing are compared with
pulse         looks at what has run while a script calls none of our functions for long
quiet_steps   some steps begin with idle devices, so that tracing them is timed undisturbed
timed_steps   in those steps the reference is timed, and launches are counted
"""
