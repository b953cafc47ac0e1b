"""
Which portfolio loses least on the worst days?
==============================================

Variance counts good days and bad days alike, and takes a rare crash for a small risk. The conditional value at risk
(CVaR) is the mean loss of the worst 1% of the days. It is usually written as a linear program with one more variable
and row per day; here it is one loss, and other measures of risk take its place.
"""

import matplotlib.pyplot as plt
import numpy as np

import saddleback as sb

rng = np.random.default_rng(0)


def draw_returns(days):
    """Return daily returns in percent: six shares, and six funds that are calm until a common crash."""
    market = rng.standard_t(4, (days, 1))
    shares = 0.04 + 0.5 * market + 0.5 * rng.standard_normal((days, 6))
    crash = (rng.random((days, 1)) < 0.01) * rng.gamma(4.0, 1.2, (days, 1))
    funds = 0.05 + 0.4 * rng.standard_normal((days, 6)) - crash
    return np.hstack([shares, funds])


returns, future = draw_returns(3000), draw_returns(50_000)

# %%
# Weights are positive and sum to one. The three problems differ in the loss of the daily returns only. Gini's mean
# difference compares all pairs of days.

losses = {
    "variance": (returns - returns.mean(axis=0), sb.Squared(np.zeros(3000))),
    "Gini": (returns, sb.Gini(np.zeros(3000))),
    "CVaR": (-returns, sb.CVaR(np.zeros(3000), level=0.99)),
}

# %%
# Variance and Gini trust the funds, since their crashes are rare. CVaR looks at nothing but the worst days, and takes
# the shares, whose losses are small in comparison.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for shift, colour, (name, (matrix, loss)) in zip((-0.25, 0, 0.25), ("C1", "C2", "C0"), losses.items(), strict=True):
    result = sb.solve(sb.Problem(sb.Simplex(), matrix, loss), tol=1e-5)
    worst = np.sort(-future @ result.x)[-2500:]
    print(
        f"{name}: mean loss of the worst 1% of the new days {worst[-500:].mean():.2f}%, gap {result.relative_gap:.0e}"
    )
    left.bar(np.arange(2) + shift, [result.x[:6].sum(), result.x[6:].sum()], width=0.23, color=colour, label=name)
    right.plot(np.linspace(5, 0.002, 2500), worst, color=colour, label=name)
left.set_xticks([0, 1], ["shares", "funds that are calm\nuntil they crash"])
left.set(ylabel="share of the portfolio", ylim=(0, 1))
right.set(xscale="log", xlabel="share of the days that are worse, %", ylabel="loss on a new day, %")
right.invert_xaxis()
right.legend(frameon=False, title="the portfolio minimises")
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
plt.show()
