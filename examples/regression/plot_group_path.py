"""
Which categories matter, as a whole?
====================================

A category with five levels is five columns. A Lasso picks single columns, so that its answer depends on how the levels
were coded, and half of a category may be in the model. The group Lasso takes a category with all its levels or not at
all. scikit-learn does not have it, and other libraries have it for few losses. Here it goes with any loss, and each
fit of the path is certified.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from saddleback.estimators import GroupLassoCV, PathDisplay

rng = np.random.default_rng(0)
samples = 400
levels = {"district": 6, "heating": 4, "storey": 5, "street side": 2, "agency": 8, "weekday": 7}
codes = {name: rng.integers(count, size=samples) for name, count in levels.items()}
table = pd.DataFrame({"size": rng.standard_normal(samples), "age": rng.standard_normal(samples)})
for name, values in codes.items():
    table = table.join(pd.get_dummies(pd.Series(values), prefix=name, dtype=float))

district = np.array([2.0, 1.0, 0.0, 0.0, -1.0, -2.0])[codes["district"]]
heating = np.array([0.8, 0.3, -0.3, -0.8])[codes["heating"]]
rent = 10 + 2 * table["size"] - 0.4 * table["age"] + district + heating + rng.standard_normal(samples)

# %%
# One label per column says to which category it belongs. The one-standard-error rule takes the sparsest model that
# predicts about as well as the best one.

groups = [column.split("_")[0] for column in table.columns]
model = GroupLassoCV(groups=groups, rule="1se").fit(table, rent)
chosen = sorted({group for group, weight in zip(groups, model.coef_, strict=True) if weight != 0})
print(f"in the model: {', '.join(chosen)}; certified relative gap {model.certificate_.relative_gap:.0e}")

# %%
# All levels of a category leave zero at the same alpha. The four that matter come before the four that do not.

figure, axis = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
PathDisplay(model.path_).plot(axis)
axis.axvline(model.alpha_, color="black", linestyle=":", linewidth=1)
axis.text(model.alpha_, axis.get_ylim()[0], "chosen  ", va="bottom", ha="right")
axis.set_ylabel("effect on the rent")
plt.show()
