"""torchrun for simulated cores: one warm process, forked into the workers.

torchrun  the command: torch's own arguments, agent and exit codes
preload   what is imported once, before the fork
worker    one forked worker: becomes a core, runs the script
"""
