"""What ran, counted while it runs. Knows no price and no other machine's clock.

recorder  hooks into torch_xla; one record a step, a graph, a start and an end
graphs    which graph ran: torch_xla's own execution analysis, and each graph's cost
hlo       the work of a graph by class, from its HLO text
parameters  bytes of parameters, gradients and optimizer state
records   the JSON-lines file of one rank
script_lines  the line of the user's script that is running
why_new   why a graph is new, against the closest earlier one: two HLO texts (pure)
quiet_steps  some steps begin with idle devices
script_time  CPU time of the script's thread, without the simulator's own
"""
