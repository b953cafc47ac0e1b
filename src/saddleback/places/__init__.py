"""Where A lies and its kernels run: one folder per place."""
