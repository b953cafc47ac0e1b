"""
What would one more hour of a machine be worth?
===============================================

A linear program says what to produce. Its dual says what a scarce resource is worth: the shadow price is the profit of
one more unit. ``scipy.optimize.linprog`` returns these numbers as marginals; here the result also has the certificate,
and a proof if there is no solution.
"""

import matplotlib.pyplot as plt
import numpy as np

import saddleback as sb

profit = np.array([45.0, 60.0, 50.0])  # of a chair, a table, a shelf
use = np.array([[1.0, 3.0, 2.0], [2.0, 2.0, 1.0], [3.0, 2.0, 4.0]])  # hours of saw, lathe and paint shop for each
demand = np.array([30.0, 30.0, 20.0])


def plan(saw):
    """Return the best plan for a number of hours of the saw."""
    limits = sb.Interval(-np.inf, [saw, 90.0, 120.0])
    return sb.solve(sb.Problem(sb.Box(0.0, demand) - sb.Linear(profit), use, limits))


today = plan(60.0)
print(today)
print("make", dict(zip(["chairs", "tables", "shelves"], today.x.round(2).tolist(), strict=True)))
print("an hour more of saw, lathe, paint shop:", (-today.shadow_prices).round(2))

# %%
# The profit as a function of the hours of the saw is concave and has corners, at which another plan becomes the best
# one. The shadow price is its slope.

hours = np.linspace(0, 120, 61)
profits = [-plan(saw).objective for saw in hours]
price = -today.shadow_prices[0]
figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
axis.plot(hours, profits, color="C0", linewidth=2.5, label="profit of the best plan")
near = np.array([25.0, 95.0])
axis.plot(near, -today.objective + price * (near - 60), color="C3", linestyle="--", label=f"slope {price:.1f} per hour")
axis.plot(60, -today.objective, "o", color="C3", markersize=9, label="today")
axis.set(xlabel="hours of the saw", ylabel="profit", ylim=(0, None))
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="lower right")
plt.show()
