"""The benchmark: other libraries beside this one, on the same data, to the same certified accuracy.

``cases`` lists the problems, ``worker`` solves them (one process per library, so that each can have its own
environment), ``judging`` computes the error of an answer, ``race`` measures the times, ``passes`` and ``growth``
measure the cost of a pass, ``report`` and ``figures`` write the results.
"""
