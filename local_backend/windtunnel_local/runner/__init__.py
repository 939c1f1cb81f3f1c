"""What runs the containers of a job: the `Runner` port, with Docker and as plain processes."""
