"""A Lasso path and the choice of alpha by cross-validation, in a few lines.

python examples/lasso_path.py [picture.png]
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from saddleback.datasets import make_lasso
from saddleback.estimators import LassoCV


def main(picture: str) -> None:
    """Fit 100 alphas on 5 folds and draw the path and the errors."""
    data = make_lasso(m=200, n=500, nonzeros=10)
    rng = np.random.default_rng(1)
    y = data.b + 0.05 * rng.standard_normal(200)
    model = LassoCV(cv=5).fit(data.A, y)
    print(f"alpha {model.alpha_:.3g}: {np.count_nonzero(model.coef_)} of 500 coefficients, {model.result_}")
    model.plot()
    Path(picture).parent.mkdir(parents=True, exist_ok=True)
    plt.savefig(picture, dpi=150)
    print(f"The picture is in {Path(picture).resolve()}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "out/lasso_path.png")
