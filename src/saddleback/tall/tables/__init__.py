"""Tables of named columns, in files or in memory, through pyarrow: where they lie, and how their columns become X.

Only `row_files.py` imports these modules, and only when a table is given, so that the library runs without pyarrow.
"""
