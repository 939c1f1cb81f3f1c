"""An existing training job: wait for it, follow its log, stop it, download its results."""
