"""Problems, columns of A and solutions in files."""
