"""The code in the process of one library. It needs numpy and scipy, and saddleback only if that is the library."""
