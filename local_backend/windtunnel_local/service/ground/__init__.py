"""What everything else in the service stands on: the job as data, its states, and the ports to the outside."""
