"""What can be seen of a job: its log, its metrics, its counters, what its cores do now."""
