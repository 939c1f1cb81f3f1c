"""A training job that exists: wait for it, follow its log, stop it, fetch what it made."""
