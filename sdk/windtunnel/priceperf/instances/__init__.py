"""What each instance type has: the one home of hardware figures."""
