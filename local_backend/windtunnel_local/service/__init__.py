"""The rules of jobs and endpoints, without HTTP, SQL or Docker. Each line below imports only from the lines below it:

service                  all parts in one object, which the API's operations and the page call
batch                    batch transform jobs
hosting                  models and endpoints
training_jobs, answers   SageMaker's operations on training jobs
supervisor, job_run      a thread for each training job, from its acceptance to its end
running                  the steps of a training job, one file for each status, and what they share
observed                 what is read from a running job: logs, metrics, counters
data                     a job's files: channels, source, checkpoints, outputs
request                  what a request asks for, and the plan of containers made from it
ground                   a job as data, its states, the ports, errors and settings
"""
