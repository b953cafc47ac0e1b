from benchopt import BaseSolver
from celer import celer_path


class Solver(BaseSolver):
    name = "celer"
    requirements = ["pip::celer"]
    sampling_strategy = "tolerance"

    def skip(self, X, y, lambdas, fit_intercept):
        return fit_intercept, "celer_path has no intercept"

    def set_objective(self, X, y, lambdas, fit_intercept):
        self.X, self.y, self.alphas = X, y, lambdas / len(y)

    def run(self, tol):
        _, self.coefs, _ = celer_path(self.X, self.y, "lasso", alphas=self.alphas, tol=tol, max_iter=1000)

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        return {"coefs": self.coefs}
