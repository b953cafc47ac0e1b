import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """A signal with ten levels, seen directly or through a random matrix."""

    name = "simulated"
    parameters = {"n_samples, n_features, kind": [(1000, 1000, "identity"), (400, 500, "random")]}
    test_parameters = {"n_samples, n_features, kind": [(60, 60, "identity"), (50, 60, "random")]}

    def get_data(self):
        rng = np.random.default_rng(0)
        signal = np.repeat(rng.standard_normal(10), self.n_features // 10)
        A = np.eye(self.n_features) if self.kind == "identity" else rng.standard_normal((self.n_samples, len(signal)))
        image = A @ signal
        return {"A": A, "y": image + 0.1 * image.std() * rng.standard_normal(len(image))}
