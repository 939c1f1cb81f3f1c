"""Data between cores: shared memory inside a host, gloo between hosts.

region        the shared memory of one host's workers
arrival       who has arrived: a barrier that notices dead and late peers
reduction     the arithmetic of a reduction, equal in every bit on every rank
within_host   collectives through the region
across_hosts  collectives through gloo, for groups that span hosts
communicator  picks between them; all that `collectives` sees
"""
