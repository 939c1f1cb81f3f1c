"""Endpoints: from their request to containers that answer, and who is asked which request.

hosting            SageMaker's operations on models, endpoint configurations and endpoints
endpoint_run       a thread for each endpoint: instances come, are replaced, and go
record_thread      what such a thread does, also for transform jobs, and all of a kind
instances          those of one endpoint or transform job
instance_run       a thread for each instance, from its model's download to its container's end
container_answer   an answer that is too large or too slow for the API's own call
async_queue        the questions of InvokeEndpointAsync, answered one after the other
async_call         one of them
meter              metrics, gathered by the minute
router             which instance gets a request
records            the record of an endpoint or a transform job, changed by one thread at a time
serving_plan       an instance as the container that runs it
model_files        /opt/ml/model
hosting_members    every member of these requests: honoured, kept, or refused
accepted           what a request may ask for here
"""
