"""Images and volumes: denoising, deblurring and inpainting by total variation."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import saddleback as sb

from ..common.arrays import Vector
from ..common.checks import one_of, shown
from ..operators.differences import grid_shape
from .displays import given_axes
from .documentation import documented, entries
from .signals import JUDGED, OF_SMOOTHERS, Smoother


@documented(
    entries("""
image_ : array
    The fitted image; the means exp(x) if the loss has a log link, as "poisson".
""")
    | JUDGED,
    OF_SMOOTHERS
    | entries("""
alpha : float
    Strength of the penalty, at least 0, in the units of the pixels. About the standard deviation of the noise is a good
    start for the squared loss.
isotropic : bool
    Whether edges cost the same in all directions; without it, those along the axes cost least.
operator : LinearOperator or matrix
    K, which maps an image, flattened in row-major order, to the flattened data. None is the identity.
shape : tuple of int
    Shape of the image; None is that of the data.
"""),
)
class TotalVariationDenoiser(Smoother):
    r"""An image or volume with few edges, fitted to noisy, blurred or incomplete data.

    Minimises :math:`\ell(Kx, b) + \alpha\, \mathrm{TV}(x)` over the images x (Rudin, Osher and Fatemi, 1992), with b
    the data. The loss is summed over pixels; for loss="squared" it is :math:`\frac12 \|Kx - b\|^2`. The isotropic TV is
    the sum of the lengths of the gradients over the pixels; without ``isotropic`` it is the sum of the absolute
    differences of neighbours. K is the identity, or an ``operator`` such as a blur or a mask.

    Pixels that are NaN are missing: the loss leaves them out, and the penalty fills them in. The channels of a colour
    image are best denoised one by one.

    Examples
    --------
    >>> import numpy as np
    >>> from saddleback.estimators import TotalVariationDenoiser
    >>> image = np.zeros((16, 16))
    >>> image[4:12, 4:12] = 1.0
    >>> noisy = image + 0.1 * np.random.default_rng(0).standard_normal(image.shape)
    >>> found = TotalVariationDenoiser(alpha=0.15).fit_transform(noisy)
    >>> bool(np.abs(found - image).mean() < 0.5 * np.abs(noisy - image).mean())
    True
    """

    def __init__(
        self,
        alpha: float = 0.1,
        isotropic: bool = True,
        loss: str = "squared",
        *,
        operator: Any = None,
        shape: tuple[int, ...] | None = None,
        quantile: float = 0.5,
        expectile: float = 0.5,
        delta: float = 1.0,
        epsilon: float = 0.1,
        power: float = 1.5,
        tol: float = 1e-4,
        max_iter: float = 10_000,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        verbose: Any = False,
        random_state: Any = None,
        device: Any = None,
    ) -> None:
        self.alpha = alpha
        self.isotropic = isotropic
        self.loss = loss
        self.operator = operator
        self.shape = shape
        self.quantile = quantile
        self.expectile = expectile
        self.delta = delta
        self.epsilon = epsilon
        self.power = power
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any = None) -> TotalVariationDenoiser:
        """Fit an image or a volume.

        Parameters
        ----------
        X : array-like
            The data, in any number of dimensions; NaN marks a missing pixel.
        y : None
            Not used.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        objective, data = self._objective(), self._checked(X, "X", np.iinfo(np.int8).max, missing=True)
        one_of("isotropic", self.isotropic, True, False)
        shape = data.shape if self.shape is None else grid_shape(self.shape)
        if self.operator is not None and not hasattr(self.operator, "shape"):
            raise TypeError(f"operator={shown(self.operator)}: expected a matrix or an operator, with a shape")
        if self.operator is not None and tuple(self.operator.shape) != (data.size, prod(shape)):
            raise ValueError(
                f"operator has shape {tuple(self.operator.shape)}: expected ({data.size}, {prod(shape)}), from an "
                f"image of shape {shape} to data of shape {data.shape}; shape= is that of the image"
            )
        if self.operator is None and shape != data.shape:
            raise ValueError(f"shape={shape} with data of shape {data.shape}: expected an operator between them")
        D = sb.Differences(shape=shape)
        norm = sb.GroupL2(self.alpha, D.groups) if self.isotropic else sb.L1(self.alpha)
        missing = np.isnan(data.ravel())
        if missing.all():
            raise ValueError("X has NaN only: expected a pixel with a value at least")
        weight = 1.0 - missing if missing.any() else None
        filled = float(objective.positive_targets)  # any value that the loss accepts, since its weight is 0
        target = data.ravel() if weight is None else np.where(missing, filled, data.ravel())
        target = target.astype(np.float64, copy=False)
        K = sb.Identity() if self.operator is None else self.operator
        (result,) = self._solve([sb.Problem(sb.Zero(), [K, D], [objective.loss_term(target, weight, 1.0), norm])])
        self._judgement([result])
        values: Vector = result.x.reshape(shape)
        self.image_ = (np.exp(values) if objective.log_link else values).astype(data.dtype, copy=False)
        self._data = data
        self._stop_if_interrupted([result])
        return self

    def _fitted(self) -> Any:
        return self.image_

    def plot(self, ax: Any = None) -> Any:
        """Draw the data and the fitted image, each a picture in grey; of a volume, the slice in the middle.

        Parameters
        ----------
        ax : array of two matplotlib axes, optional
            New ones by default.

        Returns
        -------
        array of two matplotlib axes
            The axes.
        """
        check_is_fitted(self)
        axes = given_axes(ax, 2, "for the data and the fitted image")
        values = self.image_[np.isfinite(self.image_)]
        low, high = float(values.min()), float(values.max())
        for each, picture, title in zip(axes, (self._data, self.image_), ("data", "fitted"), strict=True):
            while picture.ndim > 2:
                picture = picture[picture.shape[0] // 2]
            each.imshow(np.atleast_2d(picture), cmap="gray", vmin=low, vmax=high)
            each.set_title(title, fontsize="medium")
            each.set_axis_off()
        return axes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
