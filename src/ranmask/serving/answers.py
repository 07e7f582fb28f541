"""What answers look like, for the OpenAPI page: every field with its meaning and an example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from ranmask.results import Certificate, Detection, Prediction
from ranmask.serving.schemas import EXAMPLE, SentText

_CLASSES = ["World", "Sports", "Business", "Sci/Tech"]
_ABOUT: dict[str, tuple[str, Any]] = {
    "version": ("The version of this record.", 2),
    "label": ("The name of the class that the copies vote for; a tie goes to the first.", "Sports"),
    "label_id": ("The number of that class, from 0.", 1),
    "votes": ("How many copies named each class.", [0, 5, 1, 1]),
    "scores": ("The average score of each class; null where votes alone are counted.", None),
    "words": ("Words of the text; of a pair, of its hypothesis.", 7),
    "words_read": ("How many of them the model reads; later ones are cut off.", 7),
    "kept": ("Words that each copy shows.", 1),
    "masks": ("Copies that voted.", 7),
    "family": ("Which copies: all that there are, or a choice of them.", "all"),
    "ensemble": ("How copies are added up.", "vote"),
    "reader": (
        "Whether a model that reads whole texts beside the copies answered or failed; null where "
        "there is none.",
        None,
    ),
    "radius": (
        "So many steps of the threat leave the label as it is; null: not certified even unchanged.",
        1,
    ),
    "threat": ("What a step is: a word replaced, inserted and so on.", "substitutions"),
    "uncertain": ("Near-tied votes, all counted against the label.", 0),
    "certificate": ("Which proof it is.", "exact"),
    "guarantee": ("Whether the radius is proved, under what is assumed.", True),
    "alpha": ("The chance that the proof is wrong; null: none.", None),
    "tight": ("Whether no proof from the same votes could reach further.", True),
    "critical_words": ("Positions, from 0, of a worst choice of radius + 1 words.", [1, 2]),
    "assumes": ("What the proof assumes.", ["words are replaced one for one"]),
    "radii": ("The radius against each of the threats that were asked for.", {"insertions": 2}),
}

_ABOUT_FLAGS: dict[str, tuple[str, Any]] = {
    "version": _ABOUT["version"],
    "flagged": ("Whether the score reaches the threshold.", True),
    "score": (
        "Of windows the highest score of one; of segments the largest sum of neighbouring values; "
        "of words the sum of their weights.",
        0.371,
    ),
    "words": ("Words of the text.", 13),
    "radius": (
        "It stays flagged where at most so many words are replaced or deleted, or, inside, put in; "
        "null: nothing is proved.",
        1,
    ),
    "insertions": (
        "It stays flagged where texts are put in at so many places inside, and no word is changed; "
        "null: at any number of places, where radius is not null.",
        None,
    ),
    "characters": ("It stays flagged where at most so many characters are changed.", 0),
    "additions": (
        "Where text of any length may be added, at the same time, without taking the flag away.",
        "anywhere",
    ),
    "spans": (
        "By what it is flagged: the position of a first word, from 0, and of the one behind the "
        "last, of windows, segments or words.",
        [[6, 7], [12, 13]],
    ),
    "failed": ("Windows that the model gave no answer for, which count as not flagged.", 0),
    "positive": ("The class that is flagged.", "spam"),
    "detector": ("What is added up or looked at: words, segments or windows.", "words"),
    "threshold": ("Scores from here on are flagged.", 0.185),
    "assumes": ("What the proof assumes.", ["words are what blanks separate"]),
}


class _Answer(BaseModel):
    """Models of other kinds may add fields to a result."""

    model_config = ConfigDict(extra="allow")


def _said(about: str, example: Any, default: Any = ...) -> Any:
    return Field(default, description=about, examples=[example])


def _answer(
    name: str, result: type, about: str, of_fields: Mapping[str, tuple[str, Any]] = _ABOUT
) -> Any:
    """The JSON of a result."""
    hints = get_type_hints(result)
    values: dict[str, Any] = {
        field.name: (
            hints[field.name],
            _said(*of_fields[field.name], ... if field.default_factory is MISSING else {}),
        )
        for field in fields(result)
    }
    version = (int, _said(*of_fields["version"]))
    return create_model(name, __base__=_Answer, __doc__=about, version=version, **values)


if TYPE_CHECKING:
    PredictionResult = _Answer
    CertificateResult = _Answer
    DetectionFields = _Answer
else:
    PredictionResult = _answer(
        "PredictionResult", Prediction, "The smoothed label of a text, without a guarantee."
    )
    CertificateResult = _answer(
        "CertificateResult",
        Certificate,
        "A smoothed label, and how many words can be changed without changing it.",
    )
    DetectionFields = _answer("DetectionFields", Detection, "A detection.", _ABOUT_FLAGS)


class DetectionResult(DetectionFields):
    """Whether a text is flagged, by what, and what is proved of the flag."""

    word_values: list[float] | None = _said(
        "Only where it was asked for: what each word adds to the score; null of windows.",
        [0.0, 0.0, 0.02, 0.04],
        default=None,
    )


class TextFailure(BaseModel):
    """In the place of a result: why this text cannot be classified."""

    model_config = ConfigDict(extra="forbid")
    error: str = _said("What is wrong with the text.", "the text has no words")


_MODEL = "The model that answered."
_RESULTS = "One for each text, in their order."
_UNFINISHED = (
    "Only where the deadline came before all texts were done: the numbers of those that were not, "
    "from 0; each has an `error` in its place."
)


def _results(name: str, result: Any, model: str) -> type[BaseModel]:
    """The answer to a question with several texts."""
    results: Any = list[result | TextFailure]
    return create_model(
        name,
        __doc__="One result for each text, in their order.",
        model=(str, _said(_MODEL, model)),
        results=(results, Field(description=_RESULTS)),
        unfinished=(list[int], _said(_UNFINISHED, [128, 129], default=[])),
    )


Predictions = _results("Predictions", PredictionResult, "news")
Certificates = _results("Certificates", CertificateResult, "news")
Detections = _results("Detections", DetectionResult, "spam-sms")


class ShownCopy(BaseModel):
    """One masked copy, and what it votes for."""

    kept: list[int] = _said("Positions of the words that it shows, from 0.", [3])
    label_id: int | None = _said("The number of the class that it votes for; null: for none.", 1)


class WordVote(BaseModel):
    """What the copies that show a word say on average."""

    label_id: int = _said("The number of the class that they are for.", 1)
    lead: float = _said("Its lead over the next class, from 0 to 1.", 0.62)


class Reading(BaseModel):
    """What a reader says of some words of the text."""

    start: int = _said("The first of them, from 0.", 0)
    stop: int = _said("The one after the last.", 7)
    weight: float = _said("What its vote weighs, in copies.", 0.9)
    label_id: int | None = _said("The number of its class; null: it said nothing.", 1)


class Explanation(_Answer):
    """A certificate, some of the copies that it rests on, and the margins that remain."""

    model: str = _said(_MODEL, "news")
    result: CertificateResult = Field(description="What /v1/certify says.")
    words: list[str] = _said("The words that positions count.", ["Striker", "scores", "twice"])
    labels: list[str] = _said("Names of the classes, by their numbers.", _CLASSES)
    copies: list[ShownCopy] = Field(description="The first copies.")
    word_votes: list[WordVote | None] = Field(
        description="Of each word, what the copies that show it say; null: nothing."
    )
    readings: list[Reading] = Field(
        description="What a reader beside the copies says of the whole text and of its parts."
    )
    curves: dict[str, Any] = _said(
        "Of the certificate: its radius, and the margin that is left after each changed word.",
        {"exact": {"radius": 1, "margins": [0.28, 0.12, -0.05], "known": [True, True, True]}},
    )


class AttackAnswer(_Answer):
    """What became of the attack."""

    version: int = _said("The version of this record.", 1)
    model: str = _said(_MODEL, "news")
    labels: list[str] | None = _said("Names of the classes, where they are known.", _CLASSES)
    status: Literal["succeeded", "failed", "skipped", "error"] = _said(
        "succeeded: the label changed; failed: it did not; skipped: it was wrong before.", "failed"
    )
    text: SentText | None = _said("The text as it was sent.", EXAMPLE)
    adversarial: SentText | None = _said(
        "The text as the attack left it; after a failure, its best attempt.",
        EXAMPLE.replace("Oil", "game"),
    )
    label: int | None = _said("The class to change, by its number.", 2)
    clean_label: int | None = _said("What the model says of the text.", 2)
    final_label: int | None = _said("What the model says of the changed text.", 2)
    queries: int = _said("Texts that the model was asked about.", 381)
    words_changed: int = _said("Words that were changed.", 1)
    budget: int | None = _said("Words that could be changed.", 3)
    radius: int | None = _said("Words that are proved.", 3)


class ModelCard(_Answer):
    """What there is to know about a classifier that is served."""

    name: str = _said("The name to ask for it by.", "news")
    kind: Literal["classifier"] = _said("It answers /v1/certify and others.", "classifier")
    smoothing: str = _said("How its copies differ from a text: masks or synonyms.", "masks")
    labels: list[str] | None = _said("Names of the classes, where they are known.", _CLASSES)
    options: dict[str, Any] = _said("Its options, where a request gives none.", {"keep": 1})
    request_options: list[str] = _said("The options that a request may give.", ["keep", "masks"])
    pairs: bool | None = _said("Whether it reads pairs; null: single texts or pairs.", False)


class DetectorCard(_Answer):
    """What there is to know about a detector that is served."""

    name: str = _said("The name to ask for it by.", "spam-sms")
    kind: Literal["detector"] = _said("It answers /v1/detect, and nothing else.", "detector")
    detector: Literal["words", "segments", "windows"] = _said(
        "What it looks at: single words, runs of neighbours, or windows of a few sizes.", "words"
    )
    positive: str = _said("The class that it flags.", "spam")
    labels: list[str] = _said("All classes of its data or model.", ["ham", "spam"])
    flags: str | None = _said(
        "What it looks for, of one that comes with ranmask.", "spam, in short messages alone"
    )
    threshold: float = _said("Scores from here on are flagged.", 0.185)
    promise: str = _said(
        "What is proved of a text that it flags.", "stays flagged whatever is added anywhere"
    )
    sizes: list[int] = _said("Words of a window; none where there are no windows.", [8, 16])


class Limits(BaseModel):
    """The most that one request, or one job, may hold."""

    texts: int = _said("Texts.", 256)
    words: int = _said("Words of a text, a premise included.", 2000)
    body_bytes: int = _said("Bytes of a body.", 1_048_576)
    job_bytes: int | None = _said("Bytes of a job's file; null: no jobs are taken.", 67_108_864)
    job_rows: int | None = _said("Rows of a job's file.", 1_000_000)


class Models(BaseModel):
    """The models that are served."""

    default: str = _said(
        "The first; where a request names none, the first of its kind answers.", "news"
    )
    models: list[ModelCard | DetectorCard] = Field(description="All of them.")
    limits: Limits = Field(description="The most that one request may hold.")


class JobAnswer(BaseModel):
    """A job, and how far it is."""

    id: str = _said("Its id.", "5f0c7d1e2a3b4c5d6e7f8091a2b3c4d5")
    name: str = _said("The name of its file.", "rows.csv")
    kind: Literal["certify", "predict", "detect"] = _said("What is done with each row.", "certify")
    model: str = _said("The model.", "news")
    options: dict[str, Any] = _said("The options that were given.", {"threat": "edits"})
    status: Literal["queued", "running", "finished", "failed", "deleted"] = _said(
        "queued: it waits, or goes on soon; failed: error says why.", "running"
    )
    rows: int = _said("Rows of the file, at most.", 120_000)
    rows_done: int = _said("Rows that have a result, or an error.", 45_000)
    rows_failed: int = _said("Rows that have an error.", 2)
    bytes: int = _said("Bytes of the file.", 9_730_112)
    created: str = _said("When it was sent (UTC).", "2026-01-31T12:00:00Z")
    started: str | None = _said("When it was first begun.", "2026-01-31T12:00:01Z")
    ended: str | None = _said("When it was finished or failed.", None)
    seconds_left: float | None = _said("An estimate of how long it will take.", 61.5)
    error: str | None = _said("Why it failed.", None)
    summary: dict[str, Any] | None = _said(
        "Of a finished job: what `ranmask certify` or `detect` says in the end.", {"rows": 120_000}
    )


class JobList(BaseModel):
    """The jobs of this key, the newest first."""

    jobs: list[JobAnswer] = Field(description="All that are kept.")


class Health(BaseModel):
    """A word on the state of the service."""

    status: str = _said("ok, or ready.", "ok")


class ErrorBody(BaseModel):
    """What went wrong."""

    code: str = _said("For programs.", "unknown_model")
    message: str = _said(
        "For people: what was wrong, and what to do.",
        "no model 'weather' is served here; there are news",
    )
    request_id: str = _said("The request's id, by which the log has it.", "b4b1a6533fc2605e")


class ErrorAnswer(BaseModel):
    """Every answer that is not a result."""

    error: ErrorBody = Field(description="What went wrong.")
