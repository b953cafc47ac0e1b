import numpy as np
from benchopt import BaseDataset
from sklearn.datasets import make_classification


class Dataset(BaseDataset):
    name = "simulated"
    parameters = {"n_samples, n_features, group_size": [(2000, 500, 10)]}
    test_parameters = {"n_samples, n_features, group_size": [(60, 40, 5)]}

    def get_data(self):
        X, y = make_classification(
            self.n_samples, self.n_features, n_informative=10, flip_y=0.1, shuffle=False, random_state=0
        )
        groups = np.arange(self.n_features).reshape(-1, self.group_size).tolist()
        return {"X": X, "y": 2.0 * y - 1.0, "groups": groups}
