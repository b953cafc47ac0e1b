"""Problems with far more rows than columns, whose rows are read a few times and never held."""
