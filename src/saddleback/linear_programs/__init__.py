"""Linear programs: how they are recognised, HiGHS, and rays in exact arithmetic."""
