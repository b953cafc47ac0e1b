"""Which blocks are drawn, and how far a step may go."""
