"""The price model compared with published throughputs."""
