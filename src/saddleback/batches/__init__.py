"""Many problems with one matrix, solved together."""
