"""Where data may lie besides the memory of the host: a device of torch.

Nothing here imports torch before a device is asked for, or a tensor is handed in.
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
    """Return the device on which the first torch tensor among some values lies; None where none is a tensor."""
    torch = sys.modules.get("torch")  # who has a tensor has imported it
    tensors = [value for value in values if torch is not None and isinstance(value, torch.Tensor)]
    return open_device(tensors[0].device) if tensors else None


def on_host(value: Any) -> Any:
    """Return a torch tensor as a numpy array, anything else as it is."""
    return value if device_of(value) is None else np.asarray(value.detach().cpu())
