"""How the simulator gets into torch and torch_xla.

activation    when: torch_xla's own Neuron hook, or our launcher, makes this process a core
table         what: every entry point that is replaced or listened to, by whom, in which order
hook          how: what one line of the table says, and how it is installed
warned        warnings that torch raises behind a hook, at the line that called the hook
after_import  calls a function right after a module has been imported
deferred      modules that torch_xla's import would load, loaded at their first use instead
"""
