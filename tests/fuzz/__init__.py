"""A fuzzer of the public interface: random problems, data and options, checked by an independent certificate.

``functions.py`` has the catalogue in plain numpy, and ``certificate.py`` evaluates points with it. ``twins.py`` states
the same problem in other units and compares, and ``exact.py`` solves small programs in rational arithmetic.
``storage.py`` has the forms in which users pass a matrix, ``problems.py``, ``hard.py`` and ``cases.py`` draw cases from
a seed, ``check.py`` runs one case, and ``__main__.py`` runs many cases in separate processes: ``make fuzz``.
"""
