"""The machine: its CPUs, the threads of a solve, and the BLAS."""
