"""Batch transform: runs transform jobs, which make an output object from each input object.

transform_jobs     SageMaker's operations on transform jobs
transform_run      a thread for each job: starts its instances, replaces them, removes them when all files are done
feeder             threads that send one instance its files
work               the files that wait, and how many are done or have failed
open_file          one file: gives its payloads in order, and puts the answers together in order
invoking           one request to a container, and what follows if it fails
splitting          splits a file into payloads
data_processing    filters and joins of records (DataProcessing)
json_path          the operators of JSONPath that SageMaker supports
transform_request  the request as data, and its checks
transform_members  the table of its members: honoured, kept or refused
"""
