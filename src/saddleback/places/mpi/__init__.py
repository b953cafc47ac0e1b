"""Columns of A spread over the processes of MPI."""
