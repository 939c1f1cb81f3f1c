"""How a job's script begins: AWS's toolkit, then torchrun, one warm process that is forked into the workers.

train         the toolkit's command
requirements  what it does about pins that cannot be had here
missing       and about packages that are not here
error_names   and by which names it finds the simulator's errors
torchrun      the launcher's command: torch's own arguments, agent and exit codes
script_imports  what a script imports before it does anything
preload       what is imported once, before the fork
unimported    and counts as not imported until the script does it
worker        one forked worker: begins as a new process, runs the script
fresh         what it then does not have of the one it is forked from
xla_flags     the XLA_FLAGS of the workers
failure       how a script has failed, for the log
postmortem    after a failed launch: which rank ended how, and where the others were
interpreter   how a process that imports torch begins and ends, without what costs time only
"""
