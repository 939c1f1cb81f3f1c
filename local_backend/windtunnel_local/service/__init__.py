"""The rules of jobs and endpoints, free of HTTP, SQL and Docker. A floor imports the floors below it only:

service                  the whole of it: what the API's operations call, and the page calls too
batch                    transform jobs
hosting                  endpoints
training_jobs, answers   SageMaker's operations on training jobs
supervisor, job_run      a thread for each job, from its acceptance to its end
running                  the steps of a job, one file a status, and what they share
observed                 what is seen of a job: logs, metrics, counters
data                     its files: channels, source, checkpoints, outputs
request                  what a request asks for, and the containers that it means
ground                   a job as data, its states, the ports, errors and settings
"""
