"""The benchmark: other libraries beside this one, on the same data, to the same certified accuracy.

``cases`` says what is solved, ``worker`` solves it (one process a library, so that an environment of its own is
possible), ``judging`` says how good an answer is, ``race`` measures, ``passes`` and ``growth`` look at the cost of a
pass, ``report`` and ``figures`` write down what was found.
"""
