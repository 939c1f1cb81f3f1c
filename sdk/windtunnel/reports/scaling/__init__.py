"""One job on more and more instances of a type."""
