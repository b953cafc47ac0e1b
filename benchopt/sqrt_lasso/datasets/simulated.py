from benchopt import BaseDataset
from sklearn.datasets import make_regression


class Dataset(BaseDataset):
    name = "simulated"
    parameters = {"n_samples, n_features": [(500, 1000)]}
    test_parameters = {"n_samples, n_features": [(50, 80)]}

    def get_data(self):
        X, y = make_regression(self.n_samples, self.n_features, n_informative=20, noise=5.0, random_state=0)
        return {"X": X.copy(order="F"), "y": y}
