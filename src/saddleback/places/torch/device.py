"""A device of torch, by name, and the copies to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ...operators.contract import Operator
from .array import DeviceArray, tensor_of


class Device:
    """A device of torch.

    Parameters
    ----------
    name : "cpu", "cuda", "cuda:1" or another name for torch, or a ``torch.device``.
    """

    def __init__(self, name: Any) -> None:
        try:
            self.device = torch.empty(0, device=name).device
        except (RuntimeError, AssertionError, TypeError, ValueError) as reason:
            raise ValueError(f"device={name!r} cannot be used: {str(reason).splitlines()[0]}") from None

    def __repr__(self) -> str:
        return f"Device({str(self.device)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.device == other.device

    def __hash__(self) -> int:
        return hash(self.device)

    def zeros(self, size: int) -> Any:
        """Return zeros on the device."""
        return DeviceArray(torch.zeros(size, dtype=torch.float64, device=self.device))

    def operator(self, A: Operator) -> Operator:
        """Return an operator with its entries on the device."""
        from .operator import to_device  # here, since that module imports this one

        return to_device(A, self)

    def place(self, array: Any) -> Any:
        """Return an array on the device; an array of stride 0 stays a single value."""
        return array if isinstance(array, DeviceArray) else DeviceArray(tensor_of(array, self.device))

    def tensor(self, values: Any) -> Any:
        """Return a result, a numpy array or an array on some device, as a new tensor on this device."""
        tensor = values.tensor if isinstance(values, DeviceArray) else torch.from_numpy(np.array(values))
        return tensor.to(self.device)
