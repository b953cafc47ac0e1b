import numpy as np
from benchopt import BaseDataset
from sklearn.datasets import make_regression


class Dataset(BaseDataset):
    name = "simulated"
    parameters = {"n_samples, n_features, group_size": [(500, 5000, 10)]}
    test_parameters = {"n_samples, n_features, group_size": [(50, 60, 5)]}

    def get_data(self):
        X, y = make_regression(self.n_samples, self.n_features, n_informative=30, noise=5.0, random_state=0)
        groups = np.arange(self.n_features).reshape(-1, self.group_size).tolist()
        return {"X": X.copy(order="F"), "y": y, "groups": groups}
