"""A classifier or a detector inside other guards: an LLM Guard scanner, a NeMo Guardrails action.

    from llm_guard import scan_prompt
    scan_prompt([RanmaskScanner(load_detector("injection"))], prompt)

    rails.register_action(rails_action(Guard(load_classifier("DIR"), "spam")))

Neither package is needed to import this module.  Tested with llm-guard 0.3.16 and nemoguardrails
0.24.1: ``python -m tools.guards``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Any

from ranmask.errors import OptionError
from ranmask.results import MarginCertificate
from ranmask.runs.task import class_number
from ranmask.smoothing.detectors import Detector
from ranmask.smoothing.interface import CertifiedClassifier
from ranmask.words import split


@dataclass(frozen=True)
class Verdict:
    """What is said of a text.

    ``score``: the lead of the positive class, from -1 to 1; of a detector, how far its score is
    above the threshold, as a part of the larger of both.  ``proved_words``: how many words can
    be changed, to anything, without taking the flag away; None where there is none, or no proof.
    """

    flagged: bool
    label: str
    score: float
    proved_words: int | None

    @property
    def risk(self) -> float:
        """The score from 0, no risk, to 1."""
        return (self.score + 1) / 2


class Guard:
    """Flags texts of one class.

    Args:
        classifier: Any smoothed classifier, or a detector.
        positive: The class that is flagged, by its name; a detector knows its own.
        threshold: Flag what scores above it, as ``ranmask gate --calibrate`` sets it for a rate of
            false positives; 0: what is labelled so.
    """

    def __init__(
        self,
        classifier: CertifiedClassifier | Detector,
        positive: str | None = None,
        threshold: float = 0.0,
    ) -> None:
        self.classifier, self.threshold = classifier, threshold
        if isinstance(classifier, Detector):
            if threshold or positive not in (None, classifier.positive):
                raise OptionError(
                    f"a detector of {classifier.positive!r} has its own class and threshold: leave "
                    "out positive and threshold"
                )
            return
        if positive is None:
            raise OptionError("a classifier needs positive, the name of the class that is flagged")
        self._number = class_number(positive, classifier.labels)
        self._scored = bool(getattr(classifier, "gives_margins", False))
        if threshold and not self._scored:
            raise OptionError(
                f"threshold={threshold!r} needs a classifier whose scores are certified, with "
                "certificate='exact' and threat='substitutions'"
            )

    def check(self, text: str) -> Verdict:
        """What is said of a text; one without words is not flagged.

        Raises `TextError` for what is no valid Unicode: whoever calls decides not to let it pass.
        """
        if not split(text):
            return Verdict(False, "", -1.0, None)
        if isinstance(self.classifier, Detector):
            [seen] = self.classifier.detect([text])
            score = (seen.score - seen.threshold) / max(seen.score, seen.threshold)
            label = seen.positive if seen.flagged else f"not {seen.positive}"
            return Verdict(seen.flagged, label, score, seen.radius)
        if self._scored:
            [found] = self.classifier.certify_margins([text], self._number)  # type: ignore[attr-defined]
            assert isinstance(found, MarginCertificate)
            flagged = found.flagged(self.threshold)
            radius = found.flag_radius(self.threshold)
            return Verdict(flagged, found.label, found.score, radius)
        [said] = self.classifier.predict([text])
        shares = said.scores or [votes / said.masks for votes in said.votes]
        others = [share for place, share in enumerate(shares) if place != self._number]
        score = shares[self._number] - max(others)
        return Verdict(said.label_id == self._number, said.label, score, None)


class RanmaskScanner(Guard):
    """A scanner for LLM Guard, of prompts and of outputs."""

    def scan(self, prompt: str, output: str | None = None) -> tuple[str, bool, float]:
        """The text as it was, whether it may pass, and its risk; the output, where one is given."""
        text = prompt if output is None else output
        verdict = self.check(text)
        return text, not verdict.flagged, verdict.risk


def rails_action(
    guard: Guard, name: str = "ranmask_check"
) -> Callable[..., Awaitable[dict[str, Any]]]:
    """An action for NeMo Guardrails, to be registered under its name.

    It checks ``text``, by default the user's message, in a thread of its own, and returns a
    `Verdict` as a mapping, of which a flow reads ``$verdict["flagged"]``.
    """
    try:
        from nemoguardrails.actions import action
    except ImportError as error:
        raise OptionError(
            "a rails action needs NeMo Guardrails: pip install nemoguardrails"
        ) from error

    async def check(text: str | None = None, context: dict[str, Any] | None = None) -> Any:
        checked = text if text is not None else (context or {}).get("user_message") or ""
        verdict = await asyncio.to_thread(guard.check, checked)
        return {**asdict(verdict), "risk": verdict.risk}

    named: Callable[..., Awaitable[dict[str, Any]]] = action(name=name)(check)
    return named
