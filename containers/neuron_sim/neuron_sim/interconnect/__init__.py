"""Data between cores: shared memory inside a host, gloo between hosts.

communicator  picks between the two; all that `collectives` sees
within_host   collectives through the shared memory
across_hosts  collectives through gloo, for groups that span hosts
region        the shared memory of one host's workers
arrival       who has arrived: a barrier that notices dead and late peers
peers         why a peer does not come, and the words for it
long_wait     what is said of a wait that takes long, and left for who ends the job
notes         the latter: who waited where, and for how long
stack         on which line another process is
mail          tensors sent over a channel
reduction     the arithmetic of a reduction, equal in every bit on every rank
futex         sleeping and waking in shared memory
"""
