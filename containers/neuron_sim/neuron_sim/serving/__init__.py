"""Models behind HTTP, as SageMaker hosts them: what the container does when it is started with `serve`.

serve    the command: requirements.txt, workers, server
http     the server: /ping and /invocations
pool     the workers: asked one request at a time each, replaced when they end
frames   what both say to each other
worker   one of them: the model, and the handlers by AWS's toolkit
context  what handlers may know of a request
"""
