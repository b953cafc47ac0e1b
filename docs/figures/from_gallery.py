"""Draw the pictures of the guide that are also in the gallery: ``python docs/figures/from_gallery.py``."""

import runpy
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
PICTURES = {
    "joint_quantiles": "regression/plot_joint_quantiles.py",
    "trend_filter": "signals/plot_trend_with_outliers.py",
    "total_variation": "signals/plot_picture_restoration.py",
    "fused_lasso": "signals/plot_fused_lasso.py",
}

matplotlib.use("Agg")
plt.show = lambda: None
for name, example in PICTURES.items():
    runpy.run_path(str(HERE.parents[1] / "examples" / example))
    plt.gcf().savefig(HERE / f"{name}.png", dpi=80)
