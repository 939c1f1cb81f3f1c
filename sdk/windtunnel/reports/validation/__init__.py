"""The price model held against published throughputs."""
