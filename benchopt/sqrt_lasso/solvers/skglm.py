import warnings

from benchopt import BaseSolver
from skglm.experimental.sqrt_lasso import SqrtLasso


class Solver(BaseSolver):
    name = "skglm"
    requirements = ["pip::skglm"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lmbd):
        self.X, self.y, self.alpha = X, y, lmbd

    def warm_up(self):
        self.run_once(1.0)  # compiles

    def run(self, tol):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model = SqrtLasso(alpha=self.alpha, tol=tol, fit_intercept=False).fit(self.X, self.y)

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        return {"beta": self.model.coef_.ravel()}
