"""Fits of a linear model to rows that are read in chunks: files, and collections of Dask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..engine.clock import Clock
from ..places.mpi.communicator import communicator_of
from ..tall.from_user import as_rows
from ..tall.rows import Rows
from ..tall.spread import spread
from . import tall_fit
from .inference.methods import Inferential
from .objective import Choice, Objective
from .table import Table
from .tall_fit import TallFit


class FromRows(Inferential, ABC):
    """The part of the linear models that fits them to rows in chunks."""

    losses: Mapping[str, Choice]
    """The losses of the model by their names."""

    @abstractmethod
    def _row_targets(self, rows: Rows) -> tuple[list[Rows], float]:
        """Return the rows with the targets of every problem, and the weight of all samples."""

    @abstractmethod
    def _with_indices(self, n_features: int) -> Objective:
        """Return the objective with indices of columns in place of their names."""

    @abstractmethod
    def _fit(self, dtype: Any, ready: Any, clock: Clock) -> Any:
        """Solve the problems of checked data, and set the fitted attributes."""

    def fit_files(
        self, path: Any, target: str, weights: str | None = None, columns: Sequence[str] | None = None
    ) -> Any:
        """Fit the model to tables in files, which are read a few times and need not fit into memory.

        Parameters
        ----------
        path : str, path, list of these, pyarrow Dataset or DataFrame
            A Parquet or Arrow file, a folder of them or a pattern such as ``"data/*.parquet"``. A DataFrame of pandas
            or polars, or a Table of pyarrow, is accepted too, and so is a row-major .npy file or a Zarr array.
        target : str or array-like
            Name of the column with the targets; for a .npy file or a Zarr array, the targets.
        weights : str, optional
            Name of the column with the weights of the samples.
        columns : sequence of str, optional
            Names of the features; by default all other columns. Columns of categories or strings become one feature
            per value, named "column=value".

        Returns
        -------
        self : object
            The fitted model, with the names of the features in ``feature_names_in_``.
        """
        clock = self._clock()
        return self._fit_rows(as_rows(path, target, weights, columns), clock)

    def _fit_rows(self, rows: Rows, clock: Clock) -> Any:
        """Fit the model to rows that are read in chunks."""
        self.n_features_in_ = rows.n_columns
        if rows.named:
            self.feature_names_in_ = np.array(rows.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._objective().check(self.losses)
        objective = self._with_indices(rows.n_columns)
        missing = tall_fit.lacking(objective, rows.n_columns, self.constraints, self.device)
        if missing:
            raise ValueError(
                f"{type(self).__name__} has {missing}: a fit to rows in chunks cannot have that; fit to data in memory"
            )
        with communicator_of(self.comm) as team:
            rows = spread(rows, team)
        targets, total = self._row_targets(rows)
        return self._fit(np.float64, TallFit(objective, targets, total, self.fit_intercept), clock)

    def _can_be_tall(self, table: Table, y: Any, clock: Clock) -> bool:
        """Return whether a fit to rows in chunks has all that the model asks for."""
        n_features = table.shape[1]
        return not tall_fit.lacking(self._with_indices(n_features), n_features, self.constraints, None)
