import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """A matrix of rank 5 with outliers in 5 % of its entries, and noise."""

    name = "simulated"
    parameters = {"n_rows, n_columns": [(400, 200)]}
    test_parameters = {"n_rows, n_columns": [(20, 15)]}

    def get_data(self):
        rng = np.random.default_rng(0)
        low_rank = rng.standard_normal((self.n_rows, 5)) @ rng.standard_normal((5, self.n_columns))
        outliers = 10.0 * rng.standard_normal(low_rank.shape) * (rng.random(low_rank.shape) < 0.05)
        return {"X": low_rank + outliers + 0.1 * rng.standard_normal(low_rank.shape)}
