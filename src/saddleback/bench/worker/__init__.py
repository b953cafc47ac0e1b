"""What runs in the process of one library: it knows numpy and scipy, and no more of saddleback than of its peers."""
