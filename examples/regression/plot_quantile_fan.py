"""
Do poor and rich households spend the same share on food?
=========================================================

The spread of food expenditure grows with income, so that one line through the middle hides half of the story. A line
per quantile shows it, and intervals say which differences between the lines are more than chance.
``QuantileRegressor`` of scikit-learn has no intervals. ``QuantReg`` of statsmodels has them, but stops when its
coefficients change little, without a bound on how far they are from the solution.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression
from statsmodels.datasets import engel

from saddleback.estimators import QuantileRegressor

table = engel.load_pandas().data
X, y = table[["income"]], table["foodexp"]

# %%
# The process fits one quantile after the other. Its standard errors are those of Hendricks and Koenker, which allow
# the spread to depend on income.

median = QuantileRegressor(quantile=0.5, alpha=0, tol=1e-9).fit(X, y)
lines = median.quantile_process(X, y, np.linspace(0.05, 0.95, 19).round(2)).to_frame()
slopes = lines.xs("income", level="name")
print(f"certified relative gap of the median: {median.certificate_.relative_gap:.0e}")
print(slopes.loc[[0.05, 0.5, 0.95]].round(2))

# %%
# The slope rises from 0.34 to 0.71: households that spend little on food put a third of a further franc into it, those
# that spend much put more than two thirds. The slope of least squares, 0.49, describes neither end. (One household,
# with an income of 4957, is outside of the picture.)

mean = LinearRegression().fit(X.values, y)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.plot(X["income"], y, ".", color="0.75", markersize=4)
ends = np.array([X["income"].min(), X["income"].max()])
for quantile in (0.05, 0.25, 0.5, 0.75, 0.95):
    intercept, slope = lines.loc[quantile, "coefficient"]
    left.plot(ends, intercept + slope * ends, color=plt.cm.viridis(0.9 * quantile), label=f"{quantile:.0%}")
left.plot(ends, mean.predict(ends[:, None]), color="C3", linestyle="--", label="mean")
left.set(xlabel="income, Belgian francs per year", ylabel="food expenditure", xlim=(300, 3100), ylim=(150, 2150))
left.legend(*(part[::-1] for part in left.get_legend_handles_labels()), frameon=False, fontsize="small")

right.fill_between(
    slopes.index, slopes["lower 0.95"], slopes["upper 0.95"], color="C0", alpha=0.2, label="95% interval"
)
right.plot(slopes.index, slopes["coefficient"], color="C0", marker="o", markersize=3, label="slope of the quantile")
right.axhline(mean.coef_[0], color="C3", linestyle="--", label="slope of the mean")
right.set(xlabel="quantile", ylabel="food expenditure per franc of income")
right.legend(frameon=False, fontsize="small")
plt.show()
