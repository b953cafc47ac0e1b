"""
Which features enter a model first, and when should one stop?
=============================================================

A Lasso with a large penalty has no features. As alpha falls, features enter one by one, in an order that tells more
than a single fit. ``LassoCV`` of scikit-learn computes the same path, and says how accurate its last fit is. Here
every fit of the path and of the folds is certified.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from saddleback.estimators import LassoCV, PathDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X = (X - X.mean()) / X.std()
X.columns = [
    "age",
    "sex",
    "body mass",
    "blood pressure",
    "total chol.",
    "LDL",
    "HDL",
    "chol. / HDL",
    "triglyc.",
    "sugar",
]

model = LassoCV(cv=10).fit(X, y)
print(f"alpha {model.alpha_:.2g}: {np.count_nonzero(model.coef_)} of {X.shape[1]} features")
print(f"certified relative gap: {model.certificate_.relative_gap:.0e}")

# %%
# Body mass and triglycerides come first, then blood pressure. LDL and total cholesterol, which are nearly the same
# number, enter late and grow in opposite directions: a sign that the two should not be read one by one.

figure, axis = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
PathDisplay(model.path_).plot(axis)
axis.axvline(model.alpha_, color="black", linestyle=":", linewidth=1)
axis.text(model.alpha_, axis.get_ylim()[0], "  chosen by 10 folds", va="bottom")
axis.set_ylabel("effect of one standard deviation\non the progress of diabetes")
plt.show()
