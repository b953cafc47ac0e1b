"""How a worker tells the comparing process that a case has found nothing."""

ERROR = "error"
"""The entry of a file that says what went wrong."""

MISSING = "not installed:"
"""How an error begins that says that an optional package is missing."""

BEGUN = "begun"
"""The file that says that a worker could import its side of the library."""
