"""Which blocks are drawn, and how long steps may be."""
