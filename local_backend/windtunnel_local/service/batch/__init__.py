"""Batch transform: from a request to an output object for each input object.

transform_jobs     SageMaker's operations on transform jobs
transform_run      a thread for each job: instances come, are replaced, and go when all files are through
feeder             threads that send one instance its files
work               which files are left, and what has become of the others
open_file          one file: its payloads in order, its answers in order
invoking           one request to a container, and what its failure means
splitting          a file's bytes as payloads
data_processing    filters and joins
json_path          SageMaker's part of JSONPath
transform_request  the request as data, and what it may ask for
transform_members  its members: honoured, kept or refused
"""
