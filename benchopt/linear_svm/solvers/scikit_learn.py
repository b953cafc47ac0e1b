import warnings

from benchopt import BaseSolver
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC


class Solver(BaseSolver):
    """liblinear's dual coordinate descent."""

    name = "scikit-learn"
    requirements = ["pip::scikit-learn"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, C):
        self.X, self.y, self.C = X, y, C

    def run(self, tol):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LinearSVC(C=self.C, loss="hinge", fit_intercept=False, tol=tol, max_iter=100_000)
            self.coef = model.fit(self.X, self.y).coef_.ravel()

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        return {"beta": self.coef}
