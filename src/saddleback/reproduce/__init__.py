"""The experiments of Zhu and Storkey (2015), as data: which problems, which methods, which columns.

``experiment`` has what an experiment is made of, ``trace`` runs one method on one problem, ``search`` chooses what the
paper chose with hindsight. ``lasso``, ``rpca``, ``group_lasso`` and ``steps`` are the experiments, ``runner`` runs them
and writes their tables and figures.
"""

from .runner import EXPERIMENTS, run

__all__ = ["EXPERIMENTS", "run"]
