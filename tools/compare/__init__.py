"""Two commits side by side: whether their answers are the same bits, and which is faster."""
