"""What requests look like: strict, bounded, and the source of the OpenAPI page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

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
from pydantic_core import PydanticCustomError

from ranmask.data.rows import Columns
from ranmask.options import REQUEST_OPTIONS, SmoothingOptions
from ranmask.options.fields import option_fields
from ranmask.serving.detecting import WORD_VALUES
from ranmask.serving.problems import UNKNOWN_FIELD
from ranmask.words import Text

MOST_MASKS = 1_000_000
MOST_TEXTS = 10_000
MOST_COPIES_SHOWN = 100
_MOST = {**dict.fromkeys(("keep", "masks", "selection_masks"), MOST_MASKS), "seed": 2**63 - 1}
_OPTION_EXAMPLES: dict[str, Any] = {
    "keep": 1,
    "mask_rate": 0.9,
    "family": "all",
    "masks": 1000,
    "selection_masks": 1000,
    "ensemble": "vote",
    "certificate": "exact",
    "alpha": 0.05,
    "seed": 0,
    "threat": "substitutions",
    "threats": ["insertions", "deletions"],
}
SPAM = "WINNER!! You have won a FREE prize, call now to claim your reward"
EXAMPLE = "Oil prices soared to a record high as traders feared supply cuts"

SentText: TypeAlias = str | Annotated[list[str], Field(min_length=2, max_length=2)]
"""One text, or a pair of premise and hypothesis."""


class _Sent(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, sent: Any) -> Any:
        # At the first unknown one, with those that there are: a body full of them takes no longer.
        if isinstance(sent, dict) and not cls.model_fields.keys() >= sent.keys():
            field = next(name for name in sent if name not in cls.model_fields)
            # Half a surrogate pair is a name in JSON, and no text that pydantic takes.
            field = field.encode("utf-8", "backslashreplace").decode("utf-8")
            known = {"field": field, "known": list(cls.model_fields)}
            raise PydanticCustomError(UNKNOWN_FIELD, "unknown field", known)
        return sent


class _Options(_Sent):
    """How texts are smoothed and certified, as in the Python API; what is left out is the model's.

    Which of them a model takes is in its `request_options` of /v1/models.
    """

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
        limits |= {"description": field.help, "examples": [_OPTION_EXAMPLES[name]]}
        found[name] = (hint | None, Field(default=None, **limits))
    return found


if TYPE_CHECKING:
    Options = _Options
else:
    Options = create_model(
        "Options", __base__=_Options, __doc__=_Options.__doc__, **_request_fields()
    )

ModelName: TypeAlias = Annotated[
    str | None,
    Field(
        max_length=200,
        description="A name from /v1/models; by default the first one there that answers.",
        examples=["news"],
    ),
]
AskedOptions: TypeAlias = Annotated[
    Options, Field(description="Options of smoothing.", examples=[{"threat": "edits"}])
]


class Question(_Sent):
    """What every question about a label may say."""

    model: ModelName = None
    options: AskedOptions = Options()

    def given(self) -> dict[str, Any]:
        """The options that were asked for."""
        return self.options.given()


class OneText(Question):
    """One text."""

    text: SentText = Field(
        description="The text; or a pair, [premise, hypothesis], for a model of pairs.",
        examples=[EXAMPLE, ["A man is asleep.", "A man is awake."]],
    )


ManySentTexts: TypeAlias = Annotated[
    list[SentText],
    FailFast(),
    Field(
        min_length=1,
        max_length=MOST_TEXTS,
        description="The texts; each a string, or a pair, [premise, hypothesis].",
        examples=[[EXAMPLE, "Striker scores twice in the cup final"]],
    ),
]


class ManyTexts(Question):
    """Several texts."""

    texts: ManySentTexts


def _which(body: Any) -> str:
    return "many" if isinstance(body, dict) and "texts" in body else "one"


Texts: TypeAlias = Annotated[
    Annotated[OneText, Tag("one")] | Annotated[ManyTexts, Tag("many")], Discriminator(_which)
]


class DetectQuestion(_Sent):
    """What a question to a detector may say."""

    model: ModelName = Field(default=None, examples=["spam-sms"])
    word_values: bool = Field(
        default=False,
        description="Whether to say what each word adds to the score.",
        examples=[True],
    )

    def given(self) -> dict[str, Any]:
        """The options that were asked for."""
        return {WORD_VALUES: True} if self.word_values else {}


class DetectText(DetectQuestion):
    """One text to flag, or not."""

    text: str = Field(description="The text.", examples=[SPAM])


class DetectTexts(DetectQuestion):
    """Several texts to flag, or not."""

    texts: Annotated[list[str], FailFast()] = Field(
        min_length=1,
        max_length=MOST_TEXTS,
        description="The texts.",
        examples=[[SPAM, "see you at lunch"]],
    )


ToDetect: TypeAlias = Annotated[
    Annotated[DetectText, Tag("one")] | Annotated[DetectTexts, Tag("many")], Discriminator(_which)
]

AnyTexts: TypeAlias = OneText | ManyTexts | DetectText | DetectTexts
"""What a question with texts was read as."""


class ExplainQuestion(OneText):
    """One text to explain."""

    copies: int = Field(
        default=12, ge=1, le=MOST_COPIES_SHOWN, description="Copies to show.", examples=[12]
    )


class AttackQuestion(OneText):
    """One text to attack."""

    budget: Literal["radius", "radius+1"] | Annotated[int, Field(ge=1, le=1000)] = Field(
        default="radius",
        description="Most words that the attack may change: a number, or as many as are proved, "
        "or one more.",
        examples=["radius+1", 3],
    )
    label_id: int | None = Field(
        default=None,
        ge=0,
        le=100_000,
        description="The true class, by its number; by default the one predicted.",
        examples=[2],
    )


_name: Any = partial(Field, default=None, max_length=200)


class JobQuestion(Question):
    """What every job may say."""

    kind: Literal["certify", "predict", "detect"] = Field(
        default="certify",
        description="certify: labels with radii; predict: labels alone; detect: flags, by a "
        "detector, which takes neither options nor positive.",
        examples=["certify"],
    )
    name: str | None = Field(
        default=None,
        max_length=100,
        pattern=r"^[^/\\\x00-\x1f\x7f]+$",
        description="A name for the file, to know the job by.",
        examples=["rows.csv"],
    )
    positive: str | None = _name(
        description="A class that the summary holds against all others.", examples=["Sports"]
    )


class JobTexts(JobQuestion):
    """A job for texts."""

    texts: ManySentTexts


_Names: TypeAlias = list[Annotated[str, Field(min_length=1, max_length=200)]]


class JobFile(JobQuestion):
    """What is said in the address of a job for a file, whose body is the file."""

    text_column: str | None = _name(
        description="The column that holds the text; `text` by default, or the only one.",
        examples=["text"],
    )
    pair_columns: _Names | None = Field(
        default=None,
        min_length=2,
        max_length=2,
        description="Instead: the columns that hold premise and hypothesis.",
        examples=[["premise", "hypothesis"]],
    )
    label_column: str | None = _name(
        description="The column that holds the true label.", examples=["label"]
    )
    keep_columns: _Names | None = Field(
        default=None,
        max_length=50,
        description="Columns that results repeat; `id` always is.",
        examples=[["date"]],
    )

    def columns(self) -> Columns:
        """The columns that were named."""
        pair = self.pair_columns and (self.pair_columns[0], self.pair_columns[1])
        kept = tuple(self.keep_columns or ())
        return Columns(self.text_column, pair or None, self.label_column, kept)


def all_texts(asked: AnyTexts) -> list[Text]:
    """The texts of a question, pairs as tuples."""
    sent: Sequence[SentText]
    sent = [asked.text] if isinstance(asked, OneText | DetectText) else asked.texts
    return [text if isinstance(text, str) else (text[0], text[1]) for text in sent]
