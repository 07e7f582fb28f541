"""Classes of unequal size: which texts count how much, in the loss and in what is best."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

ClassWeights: TypeAlias = Literal["none", "balanced"]
CLASS_WEIGHTS: tuple[ClassWeights, ...] = get_args(ClassWeights)
