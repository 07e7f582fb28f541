"""What requests and answers look like: strict, bounded, and the source of the OpenAPI page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    FailFast,
    Field,
    Tag,
    create_model,
    model_validator,
)

from ranmask.options import REQUEST_OPTIONS, SmoothingOptions
from ranmask.options.fields import option_fields
from ranmask.results import Certificate, Prediction
from ranmask.words import Text

MOST_MASKS = 1_000_000
MOST_TEXTS = 10_000
_MOST_FIELDS = 20
MOST_COPIES_SHOWN = 100
_MOST = {**dict.fromkeys(("keep", "masks", "selection_masks"), MOST_MASKS), "seed": 2**63 - 1}

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


class _Options(_Sent):
    """How texts are smoothed and certified, as in the Python API; what is left out is saved."""

    def given(self) -> dict[str, Any]:
        """The options that were asked for."""
        asked = self.model_dump(exclude_none=True)
        return {k: tuple(v) if isinstance(v, list) else v for k, v in asked.items()}


def _request_fields() -> dict[str, Any]:
    """The fields of `SmoothingOptions`, all of which may be left out; what is dear is bounded."""
    found: dict[str, Any] = {}
    for name in REQUEST_OPTIONS:
        field = option_fields(SmoothingOptions)[name]
        hint: Any = Literal[field.choices] if field.choices else field.kind
        hint = list[hint] if field.listed else hint
        bounds = {"ge": field.least, "gt": field.above, "lt": field.below, "le": _MOST.get(name)}
        limits: dict[str, Any] = {key: at for key, at in bounds.items() if at is not None}
        if field.listed:
            limits["max_length"] = len(field.choices)
        if field.kind is float:
            limits["allow_inf_nan"] = False
        found[name] = (hint | None, Field(default=None, description=field.help, **limits))
    return found


if TYPE_CHECKING:
    Options = _Options
else:
    Options = create_model(
        "Options", __base__=_Options, __doc__=_Options.__doc__, **_request_fields()
    )


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
        return _as_texts([self.text])


class ManyTexts(Question):
    """Several texts to classify."""

    texts: Annotated[list[SentText], FailFast()] = Field(min_length=1, max_length=MOST_TEXTS)

    def all_texts(self) -> list[Text]:
        """The texts, pairs as tuples."""
        return _as_texts(self.texts)


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


def _answer(name: str, result: type, about: str) -> Any:
    """The JSON of a result."""
    hints = get_type_hints(result)
    values: dict[str, Any] = {
        field.name: (hints[field.name], ... if field.default_factory is MISSING else {})
        for field in fields(result)
    }
    return create_model(name, __base__=_Answer, __doc__=about, version=(int, ...), **values)


if TYPE_CHECKING:
    PredictionResult = _Answer
    CertificateResult = _Answer
else:
    PredictionResult = _answer(
        "PredictionResult", Prediction, "The smoothed label of a text, without a guarantee."
    )
    CertificateResult = _answer(
        "CertificateResult",
        Certificate,
        "A smoothed label, and how many words can be changed without changing it.\n\n"
        "``radius`` null: not certified even unchanged.  ``radii``: that of each threat, where "
        "``threats`` were asked for.",
    )


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

    ``curves``: of the certificate, what is left of the lead after each number of changed words.
    ``word_votes``: what the copies that show a word say; ``readings``: what a reader says.
    """

    model: str
    result: CertificateResult
    copies: list[ShownCopy]
    curves: dict[str, Any]
    word_votes: list[dict[str, Any] | None]
    readings: list[dict[str, Any]]


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


def _as_texts(sent: Sequence[str | list[str]]) -> list[Text]:
    return [text if isinstance(text, str) else (text[0], text[1]) for text in sent]
