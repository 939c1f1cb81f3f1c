"""Data between cores: shared memory inside a host, gloo between hosts.

communicator  chooses between the two; all that `collectives` uses
within_host   collectives through the shared memory
across_hosts  collectives through gloo, for groups that span hosts
region        the shared memory of one host's workers
arrival       who has arrived: a barrier that notices dead and late peers
peers         why a peer does not come, and the error for it
long_wait     reports a wait that takes long, in the log and in notes
notes         who waits where and for how long, for the process that ends the job
stack         finds the line at which another process is
mail          tensors sent over a channel
reduction     the arithmetic of a reduction, equal in every bit on every rank
futex         sleeping and waking in shared memory
"""
