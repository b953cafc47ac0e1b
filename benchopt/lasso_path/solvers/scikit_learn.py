import warnings

from benchopt import BaseSolver
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lasso_path


class Solver(BaseSolver):
    name = "scikit-learn"
    requirements = ["pip::scikit-learn"]
    sampling_strategy = "tolerance"

    def skip(self, X, y, lambdas, fit_intercept):
        return fit_intercept, "lasso_path has no intercept"

    def set_objective(self, X, y, lambdas, fit_intercept):
        self.X, self.y, self.alphas = X, y, lambdas / len(y)

    def run(self, tol):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            _, self.coefs, _ = lasso_path(self.X, self.y, alphas=self.alphas, tol=tol, max_iter=100_000)

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        return {"coefs": self.coefs}
