"""
Which pixels tell the ten digits apart?
=======================================

A multinomial model has one coefficient per pixel and digit. An L1 penalty makes single coefficients 0, so that almost
every pixel stays in use for some digit. A group penalty drops a pixel for all digits at once. ``LogisticRegression``
of scikit-learn has no group penalty, and a general solver for conic programs (Clarabel, through CVXPY) takes many
times as long.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from saddleback.estimators import SparseClassifier

X, y = load_digits(return_X_y=True)
X /= 16.0
train_X, test_X, train_y, test_y = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)

# %%
# Each pixel is a group of ten coefficients. The larger alpha, the fewer pixels are left.

figure, axes = plt.subplots(2, 2, figsize=(6.5, 7), layout="constrained")
axes = axes.ravel()
axes[0].imshow(train_X.mean(axis=0).reshape(8, 8), cmap="Greys")
axes[0].set_title("all pixels\nmean of all digits", fontsize="medium")
for axis, alpha in zip(axes[1:], (0.002, 0.01, 0.03), strict=True):
    model = SparseClassifier("multinomial", "group", alpha=alpha, tol=1e-4).fit(train_X, train_y)
    size = np.linalg.norm(model.coef_, axis=0)
    right = model.score(test_X, test_y)
    print(f"alpha {alpha}: certified relative gap {model.certificate_.relative_gap:.0e}")
    axis.imshow(np.where(size > 0, size, np.nan).reshape(8, 8), cmap="viridis")
    axis.set_title(f"{np.count_nonzero(size)} of 64 pixels\n{right:.1%} right", fontsize="medium")
for axis in axes:
    axis.set(xticks=[], yticks=[])
    axis.set_facecolor("0.92")
figure.supxlabel("colour: size of the coefficients of a pixel; grey: 0 for all digits", fontsize="medium")
plt.show()
