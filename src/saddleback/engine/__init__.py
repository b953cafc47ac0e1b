"""One solve from its arguments to its result."""
