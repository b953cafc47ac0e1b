import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Linear targets with heavy-tailed noise that grows with the first feature."""

    name = "simulated"
    parameters = {"n_samples, n_features": [(1000, 10)]}
    test_parameters = {"n_samples, n_features": [(80, 5)]}

    def get_data(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((self.n_samples, self.n_features))
        noise = rng.standard_t(3, self.n_samples) * (1.0 + 0.5 * np.abs(X[:, 0]))
        return {"X": X, "y": X[:, :3].sum(axis=1) + noise}
