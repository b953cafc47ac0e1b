import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """C sum of hinge losses + 1/2 ||b||^2.

    The interface is that of benchopt/benchmark_linear_svm_binary_classif_no_intercept; labels are -1 and 1.
    """

    name = "Linear SVM"
    min_benchopt_version = "1.8"
    parameters = {"C": [0.01, 1.0]}

    def set_data(self, X, y):
        self.X, self.y = X, y

    def evaluate_result(self, beta):
        return {"value": self.C * np.maximum(1.0 - self.y * (self.X @ beta), 0.0).sum() + 0.5 * beta @ beta}

    def get_one_result(self):
        return {"beta": np.zeros(self.X.shape[1])}

    def get_objective(self):
        return {"X": self.X, "y": self.y, "C": self.C}
