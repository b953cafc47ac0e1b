from benchopt import BaseSolver
from skglm import GroupLasso


class Solver(BaseSolver):
    name = "skglm"
    requirements = ["pip::skglm"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lmbd, groups):
        self.X, self.y, self.alpha, self.groups = X, y, lmbd, groups

    def warm_up(self):
        self.run_once(1.0)  # compiles

    def run(self, tol):
        model = GroupLasso(self.groups, alpha=self.alpha, fit_intercept=False, tol=tol)
        self.coef = model.fit(self.X, self.y).coef_

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        return {"w": self.coef}
