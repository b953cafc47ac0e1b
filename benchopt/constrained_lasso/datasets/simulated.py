import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Logarithms of a composition: the coefficients sum to 0 (Lin, Shi, Feng and Li, 2014)."""

    name = "simulated"
    parameters = {"n_samples, n_features": [(500, 1000)]}
    test_parameters = {"n_samples, n_features": [(50, 40)]}

    def get_data(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((self.n_samples, self.n_features))
        X -= np.log(np.exp(X).sum(axis=1, keepdims=True))
        coef = np.zeros(self.n_features)
        coef[:8] = [1.0, -0.8, 0.6, 0.0, 0.0, -1.5, -0.5, 1.2]
        y = X @ coef + 0.5 * rng.standard_normal(self.n_samples)
        return {"X": X, "y": y, "C": np.ones((1, self.n_features))}
