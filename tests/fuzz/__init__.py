"""A fuzzer of the public interface: random problems, data and options, judged by a certificate of its own.

``functions.py`` states the catalogue once more in plain numpy, ``certificate.py`` judges a point with it,
``storage.py`` lists the forms in which a matrix may be given, ``problems.py`` and ``cases.py`` draw cases from a seed,
``check.py`` runs one, and ``__main__.py`` runs many in processes of their own: ``make fuzz``.
"""
