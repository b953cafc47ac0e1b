"""The problem in the form that methods see: f, A and g."""
