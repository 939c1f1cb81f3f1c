"""What ran, counted while it runs. Knows no price and no other machine's clock.

recorder  hooks into torch_xla; one record a step, a graph, a start and an end
graphs    which graph ran: torch_xla's own execution analysis, and each graph's cost
hlo       FLOPs and bytes of a graph from its HLO text
records   the JSON-lines file of one rank
script    the line of the user's script that is running
"""
