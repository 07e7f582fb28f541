"""Any words, at the places that the certificate itself names as the worst."""

from __future__ import annotations

from dataclasses import replace

from ranmask.attacks.ranking import ByCertificate
from ranmask.attacks.recipe import Recipe
from ranmask.attacks.recipes import anywords
from ranmask.attacks.supplies import Preset, Supplies

USES = anywords.USES


def build(supplies: Supplies, preset: Preset) -> Recipe:
    """As anywords, in the certificate's own places."""
    return replace(anywords.build(supplies, preset, "critical"), ranking=ByCertificate())
