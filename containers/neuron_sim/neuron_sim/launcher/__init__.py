"""torchrun for simulated cores: one warm process, forked into the workers.

torchrun  the command: torch's own arguments, agent and exit codes
preload   what is imported once, before the fork
absent    and counts as not imported until the script does it
worker    one forked worker: begins as a new process, runs the script
fresh     what it then does not have of the one it is forked from
"""
