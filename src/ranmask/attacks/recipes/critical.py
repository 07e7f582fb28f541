"""Any words, at the places that the certificate itself names as the worst."""

from __future__ import annotations

from dataclasses import replace

from ranmask.attacks.ranking import ByCertificate
from ranmask.attacks.recipe import Recipe
from ranmask.attacks.recipes import anywords
from ranmask.attacks.supplies import Preset, Supplies


def build(supplies: Supplies, preset: Preset) -> Recipe:
    """As anywords, in the certificate's own places."""
    like = anywords.build(supplies, preset)
    return replace(like, name="critical", ranking=ByCertificate())
