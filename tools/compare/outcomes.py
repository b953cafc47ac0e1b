"""Names by which a worker reports to the comparing process that a case has no result."""

ERROR = "error"
"""The array of a result file that holds an error message."""

MISSING = "not installed:"
"""The first words of an error message about a missing optional package."""

BEGUN = "begun"
"""The file that a worker writes once it has imported its side of the library."""
