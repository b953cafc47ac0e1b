"""Data on a device of torch instead of in the memory of the host.

Torch is imported only when a device is requested or a tensor is passed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .device import Device

__all__ = ["device_of", "on_host", "open_device"]


def open_device(name: Any) -> Device:
    """Return a device of torch, for ``Problem.placed``.

    Parameters
    ----------
    name : str
        A device of torch, such as "cuda" or "cpu". If torch or the device is missing, this raises.

    Returns
    -------
    Device
        Where matrices can be placed.
    """
    try:
        from .device import Device
    except ImportError:
        raise ImportError(f"device={name!r} needs torch: pip install 'saddleback[gpu]'") from None
    return Device(name)


def device_of(*values: Any) -> Device | None:
    """Return the device of the first torch tensor among some values; None if none is a tensor."""
    torch = sys.modules.get("torch")  # without an import of torch there can be no tensor
    tensors = [value for value in values if torch is not None and isinstance(value, torch.Tensor)]
    return open_device(tensors[0].device) if tensors else None


def on_host(value: Any) -> Any:
    """Return a torch tensor as a numpy array, and anything else unchanged."""
    return value if device_of(value) is None else np.asarray(value.detach().cpu())
