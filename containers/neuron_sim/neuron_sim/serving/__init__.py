"""Models behind HTTP, as SageMaker hosts them: what the container does when it is started with `serve`.

serve    the command: requirements.txt, workers, server
http     the server: /ping and /invocations
pool     the workers: each gets one request at a time, and is replaced when it ends
frames   the messages between server and workers
worker   one worker: holds the model, and runs the handlers by AWS's toolkit
context  what handlers may know of a request
"""
