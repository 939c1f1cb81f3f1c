"""The base of the service, which imports none of its other parts: a job as data, its states, the ports."""
