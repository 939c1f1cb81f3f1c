"""How a job's script begins: AWS's toolkit, then torchrun, one warm process that is forked into the workers.

train         the toolkit's command
requirements  what it does about pins that cannot be had here
missing       and about packages that are not here
torchrun      the launcher's command: torch's own arguments, agent and exit codes
preload       what is imported once, before the fork
absent        and counts as not imported until the script does it
worker        one forked worker: begins as a new process, runs the script
fresh         what it then does not have of the one it is forked from
interpreter   how a process that imports torch begins and ends, without what costs time only
"""
