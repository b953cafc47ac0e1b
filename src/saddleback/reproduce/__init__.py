"""The experiments of Zhu and Storkey (2015): problems, methods, tables and figures.

``experiment`` has the classes of an experiment, ``trace`` runs one method on one problem, ``search`` chooses options
that the paper chose with hindsight. ``lasso``, ``rpca``, ``group_lasso`` and ``steps`` are the experiments. ``runner``
runs them and writes their tables and figures.
"""

from .runner import EXPERIMENTS, run

__all__ = ["EXPERIMENTS", "run"]
