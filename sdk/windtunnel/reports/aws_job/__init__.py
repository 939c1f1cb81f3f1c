"""The report of a job that ran on AWS: its bill, beside its prediction."""
