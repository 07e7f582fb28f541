"""What requests and answers look like: strict, bounded, and the source of the OpenAPI page."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, FailFast, Field, Tag, model_validator

from ranmask.certificates.families import FamilyChoice
from ranmask.options import CertificateKind, Ensemble, Threat
from ranmask.words import Text

MOST_MASKS = 1_000_000
MOST_TEXTS = 10_000
_MOST_FIELDS = 20
MOST_COPIES_SHOWN = 100

SentText: TypeAlias = str | Annotated[list[str], Field(min_length=2, max_length=2)]
"""One text, or a pair of premise and hypothesis."""


class _Sent(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, sent: Any) -> Any:
        # Each unknown field is an error of its own: a body full of them would take a while.
        if isinstance(sent, dict) and len(sent) > _MOST_FIELDS:
            raise ValueError(f"{len(sent)} fields, more than anything here has")
        return sent


class Options(_Sent):
    """How texts are smoothed and certified, as in the Python API; what is left out is saved."""

    keep: int | None = Field(
        default=None, ge=1, le=MOST_MASKS, description="Words that each copy shows."
    )
    mask_rate: float | None = Field(
        default=None, ge=0, le=1, allow_inf_nan=False, description="Or the share that it hides."
    )
    family: FamilyChoice | None = Field(
        default=None, description="Which kept sets vote (exact only)."
    )
    masks: int | None = Field(default=None, ge=1, le=MOST_MASKS, description="Number of copies.")
    selection_masks: int | None = Field(
        default=None, ge=1, le=MOST_MASKS, description="Copies that select the label (not exact)."
    )
    ensemble: Ensemble | None = None
    certificate: CertificateKind | None = None
    alpha: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        allow_inf_nan=False,
        description="Probability of error (not exact).",
    )
    seed: int | None = Field(default=None, ge=0, lt=1 << 63)
    threat: Threat | None = None

    def given(self) -> dict[str, Any]:
        """The options that were asked for."""
        return self.model_dump(exclude_none=True)


class Question(_Sent):
    """What every question may say."""

    model: str | None = Field(
        default=None,
        max_length=200,
        description="A name from /v1/models; the first one by default.",
    )
    options: Options = Options()


class OneText(Question):
    """One text to classify."""

    text: SentText

    def all_texts(self) -> list[Text]:
        """The texts, pairs as tuples."""
        return [_as_text(self.text)]


class ManyTexts(Question):
    """Several texts to classify."""

    texts: Annotated[list[SentText], FailFast()] = Field(min_length=1, max_length=MOST_TEXTS)

    def all_texts(self) -> list[Text]:
        """The texts, pairs as tuples."""
        return [_as_text(text) for text in self.texts]


def _which(body: Any) -> str:
    return "many" if isinstance(body, dict) and "texts" in body else "one"


Texts: TypeAlias = Annotated[
    Annotated[OneText, Tag("one")] | Annotated[ManyTexts, Tag("many")], Discriminator(_which)
]


class ExplainQuestion(OneText):
    """One text to explain."""

    copies: int = Field(default=12, ge=1, le=MOST_COPIES_SHOWN, description="Copies to show.")


class AttackQuestion(OneText):
    """One text to attack."""

    budget: Literal["radius", "radius+1"] | Annotated[int, Field(ge=1, le=1000)] = Field(
        default="radius", description="Most words that the attack may change."
    )
    label_id: int | None = Field(
        default=None, ge=0, le=100_000, description="The true class; by default the one predicted."
    )


class _Answer(BaseModel):
    """Models of other kinds, as cascades, may add fields to a result."""

    model_config = ConfigDict(extra="allow")


class PredictionResult(_Answer):
    """The smoothed label of a text, without a guarantee."""

    version: int
    label: str
    label_id: int
    votes: list[int]
    scores: list[float] | None
    words: int
    words_read: int
    kept: int
    masks: int
    family: str
    ensemble: str


class CertificateResult(PredictionResult):
    """A smoothed label, and how many words can be changed without changing it.

    ``radius`` null: not certified even unchanged.
    """

    radius: int | None
    threat: str
    uncertain: int
    certificate: str
    guarantee: bool
    alpha: float | None
    tight: bool
    critical_words: list[int]
    assumes: list[str]


class TextFailure(BaseModel):
    """In the place of a result: why this text cannot be classified."""

    model_config = ConfigDict(extra="forbid")
    error: str


class Predictions(BaseModel):
    """One result for each text, in their order."""

    model: str
    results: list[PredictionResult | TextFailure]


class Certificates(BaseModel):
    """One result for each text, in their order."""

    model: str
    results: list[CertificateResult | TextFailure]


class ShownCopy(BaseModel):
    """One masked copy: positions of the words that it shows, and the class that it votes for."""

    kept: list[int]
    label_id: int


class Explanation(_Answer):
    """A certificate, some of the copies that it rests on, and the margins that remain.

    ``curves``: by certificate, each what asking for it gives; ``refused``: why one is missing.
    """

    model: str
    result: CertificateResult
    copies: list[ShownCopy]
    curves: dict[str, Any]
    refused: dict[str, str] = {}


class AttackAnswer(_Answer):
    """What became of the attack; ``labels`` are the names of the classes, where they are known."""

    version: int
    model: str
    labels: list[str] | None
    status: Literal["succeeded", "failed", "skipped", "error"]
    text: SentText | None
    adversarial: SentText | None
    label: int | None
    clean_label: int | None
    final_label: int | None
    queries: int
    words_changed: int
    budget: int | None
    radius: int | None


class ModelCard(_Answer):
    """What there is to know about one model that is served."""

    name: str


class Models(BaseModel):
    """The models that are served; ``default`` answers where a request names none."""

    default: str
    models: list[ModelCard]


class Health(BaseModel):
    """A word on the state of the service."""

    status: str


class ErrorBody(BaseModel):
    """``code`` is for programs, ``message`` for people."""

    code: str
    message: str
    request_id: str


class ErrorAnswer(BaseModel):
    """Every answer that is not a result."""

    error: ErrorBody


def _as_text(sent: str | list[str]) -> Text:
    return sent if isinstance(sent, str) else (sent[0], sent[1])
