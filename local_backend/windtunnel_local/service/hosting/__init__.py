"""Endpoints: from the request to containers that answer, and which of them gets which request.

hosting            SageMaker's operations on models, endpoint configurations and endpoints
endpoint_run       a thread for each endpoint: starts its instances, replaces and removes them
record_thread      the base of this thread, also for transform jobs, and the set of all threads of a kind
instances          the instances of one endpoint or transform job
instance_run       a thread for each instance, from its model's download to its container's end
container_answer   a container's answer that may be too large or too slow for the API's own call
async_queue        the queue of an endpoint's asynchronous invocations (InvokeEndpointAsync)
async_call         one asynchronous invocation
meter              metrics of endpoints, collected by the minute
router             which instance gets a request
records            the record of an endpoint or a transform job, changed by one thread at a time
serving_plan       the plan of an instance's container
model_files        fills /opt/ml/model
hosting_members    the table of all request members: honoured, kept, or refused
accepted           checks of requests
"""
