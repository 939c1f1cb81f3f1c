"""What is read from a job: its log, its metrics, the simulator's counters, the live usage of its cores."""
