"""How the simulator gets into torch and torch_xla.

activation    when: torch_xla's own Neuron hook, or our launcher, makes this process a core
table         what: every entry point that is replaced or listened to, by whom, in which order
hook          how: one line of the table, and putting it in its place
after_import  something to do right after a module has been imported
deferred      modules of torch_xla's that are imported at their first use
"""
