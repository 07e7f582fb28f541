"""Adam (Kingma and Ba, 2015) over numpy arrays."""

from __future__ import annotations

import math

import numpy as np

from ranmask.training.table_loss import Floats

_MEAN, _SQUARE, _LEAST = 0.9, 0.999, 1e-8  # decay of the two averages, and against division by 0


class Adam:
    """Learns one ``parameter``, which is changed in place."""

    def __init__(self, parameter: Floats) -> None:
        self._parameter = parameter
        self._mean = np.zeros_like(parameter)
        self._square = np.zeros_like(parameter)
        self._steps = 0

    def step(self, gradient: Floats, rate: float) -> None:
        """One step against the gradient."""
        self._steps += 1
        self._mean *= _MEAN
        self._mean += (1 - _MEAN) * gradient
        self._square *= _SQUARE
        self._square += (1 - _SQUARE) * np.square(gradient)
        move = np.sqrt(self._square)
        move /= math.sqrt(1 - _SQUARE**self._steps)
        move += _LEAST
        np.divide(self._mean, move, out=move)
        move *= rate / (1 - _MEAN**self._steps)
        self._parameter -= move
