from benchopt import BaseDataset
from sklearn.datasets import make_classification


class Dataset(BaseDataset):
    name = "simulated"
    parameters = {"n_samples, n_features": [(5000, 100)]}
    test_parameters = {"n_samples, n_features": [(80, 20)]}

    def get_data(self):
        X, y = make_classification(self.n_samples, self.n_features, n_informative=10, flip_y=0.1, random_state=0)
        return {"X": X, "y": 2.0 * y - 1.0}
