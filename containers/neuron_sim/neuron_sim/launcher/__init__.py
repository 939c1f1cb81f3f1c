"""How a job's script starts: AWS's toolkit, then torchrun, a warm process that is forked into the workers.

train         the toolkit's command
requirements  installs a requirements.txt with pins that cannot be had here
unreached     hosts that pip could not reach, from its log
missing       advises on packages that are not in the image
error_names   makes the toolkit recognise the simulator's errors
torchrun      the launcher's command: torch's own arguments, agent and exit codes
script_imports  reads from its source what a script imports before it does anything
preload       imports modules once, before the fork
unimported    makes them look unimported until the script imports them
worker        one forked worker: looks like a new process, runs the script
fresh         resets what a worker inherits through the fork
xla_flags     the XLA_FLAGS of the workers
failure       how a script has failed, for the log
postmortem    after a failed launch: which rank ended how, and where the others were
interpreter   starts and ends a process that imports torch, without work that only takes time
"""
