"""A container that is kept after a job, and starts the next one in a fraction of the time.

    keeper        the container's main program: takes orders, runs each as its child, keeps records
    orders        the folder through which the backend and the keeper talk
    snapshot      what the container's files were before its first job
    leftovers     what one job must not leave to the next: processes, files, shared memory
    servers       processes with torch, torch_xla and the toolkit imported, from which jobs are forked
    likeness      whether a process forked from them would be like a new one
    fork_server   the loop that forks
    fork_client   the side of `train` and `torchrun`: asks a server to fork, and waits
    torchrun      the command: a fork where there is a server, or the launcher itself

Nothing here imports more than the standard library when it is imported. No code of a job
ever runs in the processes that stay: a job runs in a child, and the child ends with it.
"""
