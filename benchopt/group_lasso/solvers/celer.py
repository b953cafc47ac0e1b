from benchopt import BaseSolver
from celer import GroupLasso


class Solver(BaseSolver):
    name = "celer"
    requirements = ["pip::celer"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lmbd, groups):
        self.X, self.y, self.alpha, self.groups = X, y, lmbd, groups

    def run(self, tol):
        model = GroupLasso(self.groups, alpha=self.alpha, fit_intercept=False, tol=tol, max_iter=1000)
        self.coef = model.fit(self.X, self.y).coef_

    def get_next(self, tol):
        return min(1.0, tol / 10)

    def get_result(self):
        return {"w": self.coef}
