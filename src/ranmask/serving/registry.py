"""The models of a service, by name, and each of them with a request's own options.

A request gets the classifier that the same options give on the command line, over a model that it
shares with all others (`scorer`).  Cascades are refused: as a whole they carry no certificate.
Detectors stand beside classifiers, and answer another question (`detecting`).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, TypeAlias

from ranmask.errors import ModelError, OptionError
from ranmask.models.readers import ModelReader
from ranmask.options import SAFER
from ranmask.serving.cards import classifier_card, detector_card
from ranmask.serving.context import FairSemaphore, RequestContext
from ranmask.serving.detecting import DETECT, HostedDetector
from ranmask.serving.problems import UnknownModel, WrongKind
from ranmask.serving.reading import SharedReader
from ranmask.serving.scorer import BatchScorer, PoolFigures
from ranmask.serving.settings import NAME, ServiceSettings, listed_in
from ranmask.serving.sizing import ReadText, copies_of_one
from ranmask.smoothing.cascade import Cascade
from ranmask.smoothing.detector_store import GUARDS, is_detector, load_detector, needs_reader
from ranmask.smoothing.detectors import Detector
from ranmask.smoothing.interface import CertifiedClassifier
from ranmask.smoothing.protected import ProtectedClassifier
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.smoothing.store import SHIPPED, load_classifier
from ranmask.smoothing.synonyms import SynonymSmoothedClassifier
from ranmask.smoothing.window_detector import WindowDetector
from ranmask.words import Document

Loaded: TypeAlias = SmoothedClassifier | SynonymSmoothedClassifier
_REMEMBERED = 256
_REMEMBERED_COPIES = 4096
_OF_COPIES = (
    "keep",
    "mask_rate",
    "hide",
    "labels",
    "synonyms",
)  # options that a detector has no use for


def models_of(settings: ServiceSettings) -> dict[str, str]:
    """The models that the settings name, with those of their file as it is now."""
    lines: list[str] = []
    if settings.models_file is not None:
        text = listed_in(settings.models_file, "models")
        lines = [line.strip() for line in text.splitlines()]
    listed = [line for line in lines if line and not line.startswith("#")]
    return named_models([*settings.models, *listed])


def named_models(models: Sequence[str]) -> dict[str, str]:
    """The name that each model is served by: ``NAME=MODEL``, or the last part of the model.

    >>> named_models(["news", "films=models/best", "models/pairs"])
    {'news': 'news', 'films': 'models/best', 'pairs': 'models/pairs'}
    """
    named: dict[str, str] = {}
    for given in models:
        name, equals, model = given.partition("=")
        if not equals:
            name, model = PurePath(given).name.rpartition(":")[2], given
        if not NAME.fullmatch(name) or not model:
            raise OptionError(
                f"{given!r} gives no name to serve a model by: write NAME=MODEL, with a name of "
                "at most 64 letters, digits, dots, dashes and underscores"
            )
        if name in named:
            raise OptionError(
                f"two models would be served as {name!r}, {named[name]!r} and {model!r}: write "
                "NAME=MODEL for one of them"
            )
        named[name] = model
    return named


@dataclass(frozen=True)
class _Source:
    """What a model was loaded from; another one where a file of its folder is another."""

    model: str
    files: frozenset[tuple[str, int, int]]

    @classmethod
    def of(cls, model: str) -> _Source:
        folder = os.path.realpath(model)
        found = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
        states = ((str(file), file.stat()) for file in found if file.exists())  # no broken links
        return cls(model, frozenset((name, s.st_mtime_ns, s.st_size) for name, s in states))


@dataclass(frozen=True, eq=False)
class _Hosted:
    """A loaded model, its pool, and what a user may know of it."""

    source: _Source
    loaded: Loaded
    pool: BatchScorer
    about: dict[str, Any]
    reading: BatchScorer | None  # of a model that reads whole texts
    asking: FairSemaphore = field(default_factory=FairSemaphore)  # of another reader

    @functools.cached_property
    def options(self) -> Callable[[frozenset[tuple[str, Any]]], Any]:
        """The options of the classifier that a request asks for; most requests ask the same."""
        return functools.lru_cache(_REMEMBERED)(
            lambda given: self.loaded.options_with(**self.checked(dict(given)))
        )

    @functools.cached_property
    def copies_of_one(self) -> Callable[[frozenset[tuple[str, Any]], int], int]:
        """How many copies a text of so many words has, with these options, at most."""
        return functools.lru_cache(_REMEMBERED_COPIES)(
            lambda given, words: copies_of_one(self.options(given), words)
        )

    def copies(self, texts: Sequence[ReadText], options: Mapping[str, Any]) -> int:
        """How many copies these texts have, at most; raises `OptionError` for too many."""
        given = frozenset(options.items())
        self.options(given)  # refused also where no text can be used
        usable = (text for text in texts if isinstance(text, Document))
        return sum(self.copies_of_one(given, len(text.words)) for text in usable)

    def figures(self) -> PoolFigures:
        """What its pool has done."""
        return self.pool.figures()

    def close(self, timeout: float | None) -> None:
        """End its pools; see `BatchScorer.close`."""
        self.pool.close(timeout)
        if self.reading is not None:
            self.reading.close(timeout)

    def checked(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options that a request gives, without those that are None."""
        given = {name: value for name, value in options.items() if value is not None}
        known = self.about["request_options"]
        for name in given:
            if name not in known:
                raise OptionError(
                    f"{name!r} is no option of a request for {self.about['name']!r}; there are "
                    f"{', '.join(known)}"
                )
        by_synonyms = isinstance(self.loaded, SynonymSmoothedClassifier)
        if by_synonyms and (certificate := given.pop("certificate", SAFER)) != SAFER:
            raise OptionError(
                f"certificate={certificate!r} means nothing for a model that is smoothed by "
                f"synonyms: leave it out, or use {SAFER!r}"
            )
        return given


_AnyHosted: TypeAlias = _Hosted | HostedDetector


class ModelRegistry:
    """Models by name, loaded and measured: ready when it is built.

    Args:
        models: What to load, as `load_classifier` or `load_detector` does, by the names to serve
            it by; see `named_models`.
        batch_copies: Most copies that a model is given at once.
        waiting_copies: Where more copies would wait for a model, a request is refused.
        options: Those of `load_classifier`, for all models; None leaves one as it is saved.
    """

    def __init__(
        self,
        models: Mapping[str, str],
        *,
        batch_copies: int = ServiceSettings.batch_copies,
        waiting_copies: int = ServiceSettings.waiting_copies,
        **options: Any,
    ) -> None:
        self._options = options
        self._sizes = {"batch_copies": batch_copies, "waiting_copies": waiting_copies}
        self._turns = FairSemaphore()
        self._retired: dict[str, _AnyHosted] = {}
        self._hosted = self._opened(models, {})

    def reload(self, models: Mapping[str, str]) -> Callable[[], None]:
        """Serve these from now on; those that have not changed stay as they are.

        Where one cannot be loaded, nothing changes.  Models that are replaced or left out go on
        with the requests that they have; what is returned ends them, when no such request is left.
        """
        before = self._hosted
        self._hosted = self._opened(models, before)
        kept = set(map(id, self._hosted.values()))
        replaced = {name: model for name, model in before.items() if id(model) not in kept}
        self._retired |= replaced

        def close() -> None:
            for name, hosted in replaced.items():
                hosted.close(0)
                if self._retired.get(name) is hosted:
                    del self._retired[name]

        return close

    def _opened(
        self, models: Mapping[str, str], known: Mapping[str, _AnyHosted]
    ) -> dict[str, _AnyHosted]:
        if not models:
            shipped = ", ".join((*SHIPPED, *GUARDS))
            raise OptionError(f"name a model to serve; {shipped} come with ranmask")
        sources = {name: _Source.of(model) for name, model in models.items()}
        stay = {name for name in models if name in known and known[name].source == sources[name]}
        detectors = {
            name
            for name, model in models.items()
            if (isinstance(known[name], HostedDetector) if name in stay else is_detector(model))
        }
        if detectors == set(models):
            self._check_of_detectors(models.values())
        new = {
            name: _load(name, model, self._options, name in detectors)
            for name, model in models.items()
            if name not in stay
        }
        opened = {name: self._host(name, sources[name], loaded) for name, loaded in new.items()}
        return {name: opened[name] if name in opened else known[name] for name in models}

    def _check_of_detectors(self, models: Iterable[str]) -> None:
        """Refuse options that mean nothing where nothing but detectors is served."""
        needed = any(map(needs_reader, models))
        for name in _OF_COPIES if needed else (*_OF_COPIES, "reader"):
            if self._options.get(name) is not None:
                raise OptionError(
                    f"{name} means nothing where only detectors are served, which have no copies "
                    "and hold their own models: leave it out",
                    name,
                )

    def _host(self, name: str, source: _Source, loaded: Loaded | Detector) -> _AnyHosted:
        if isinstance(loaded, Detector):
            windows = None
            if isinstance(loaded, WindowDetector) and isinstance(loaded.reader, ModelReader):
                windows = BatchScorer(loaded.reader.base, turns=self._turns, **self._sizes)
            about = detector_card(name, source.model, loaded)
            return HostedDetector(source, loaded, about, windows)
        pool = BatchScorer(loaded.base, turns=self._turns, **self._sizes)
        reading = None
        if isinstance(loaded, ProtectedClassifier) and isinstance(loaded.reader, ModelReader):
            reading = BatchScorer(loaded.reader.base, turns=self._turns, **self._sizes)
        return _Hosted(source, loaded, pool, classifier_card(name, loaded), reading)

    def names(self) -> tuple[str, ...]:
        """The names of the models, in the order in which they were given; the first is default."""
        return tuple(self._hosted)

    def about(self, name: str) -> dict[str, Any]:
        """What a user may know of a model: plain JSON values, and no path of this machine."""
        return dict(self._of(name).about)

    def figures(self, name: str) -> PoolFigures:
        """What a model's pool has done, for metrics."""
        return self._of(name).figures()

    def smoothed(self, name: str, context: RequestContext, **options: Any) -> CertifiedClassifier:
        """The classifier that `load_classifier` gives for these options, over the shared model.

        Options that are None are left out.  Raises `OptionError` for wrong ones, and
        `UnknownModel`.  Its methods raise a `Problem` where the model is not asked.
        """
        hosted = self._known(name)
        if not isinstance(hosted, _Hosted):
            raise self._wrong_kind(name)
        chosen = hosted.checked(options)
        if hosted.reading is not None:
            chosen["reader"] = ModelReader(hosted.reading.classifier(context))
        elif isinstance(hosted.loaded, ProtectedClassifier):
            asked = hosted.loaded.reader
            turns = None if asked.threads else hosted.asking
            chosen["reader"] = SharedReader(asked, turns, context)
        return hosted.loaded.with_options(base=hosted.pool.classifier(context), **chosen)

    def detector(self, name: str, context: RequestContext) -> Detector:
        """The detector that `load_detector` gives, over a model that is shared."""
        hosted = self._known(name)
        if not isinstance(hosted, HostedDetector):
            raise self._wrong_kind(name)
        return hosted.shared(context)

    def answering(self, command: str, name: str | None = None) -> str:
        """The name of the model that answers: the one that is asked for, or the first that can."""
        wanted = HostedDetector if command == DETECT else _Hosted
        if name is not None:
            if not isinstance(self._of(name), wanted):
                raise self._wrong_kind(name)
            return name
        for known, hosted in self._hosted.items():
            if isinstance(hosted, wanted):
                return known
        raise self._wrong_kind(self.names()[0])

    def copies(self, name: str, texts: Sequence[ReadText], **options: Any) -> int:
        """How much a model is asked about these texts, at most: copies, windows or words.

        Raises `OptionError` for more than is computed.
        """
        return self._of(name).copies(texts, options)

    def close(self, timeout: float | None = None) -> None:
        """End all pools: what waits is computed first, for ``timeout`` seconds a model at most."""
        for hosted in (*self._hosted.values(), *self._retired.values()):
            hosted.close(timeout)

    def _known(self, name: str) -> _AnyHosted:
        """A model that is served, or was when a request began."""
        return self._hosted.get(name) or self._retired.get(name) or self._of(name)

    def _wrong_kind(self, name: str) -> WrongKind:
        kinds = {known: hosted.about["kind"] for known, hosted in self._hosted.items()}
        return WrongKind(name, kinds)

    def _of(self, name: str) -> _AnyHosted:
        if name not in self._hosted:
            raise UnknownModel(name, self.names())
        return self._hosted[name]


def _load(name: str, model: str, options: Mapping[str, Any], detects: bool) -> Loaded | Detector:
    if detects:
        reader = options.get("reader") if needs_reader(model) else None
        return load_detector(model, reader=reader, device=options.get("device"))
    loaded = load_classifier(model, **options)
    if not isinstance(loaded, Loaded):
        if not isinstance(loaded, Cascade):
            raise ModelError(
                f"{name!r} is a {type(loaded).__name__}, which is not served: use ranmask certify"
            )
        raise ModelError(
            f"{name!r} is a cascade, which as a whole carries no certificate and is not served: "
            "serve the folder 'smoothed' inside it"
        )
    loaded.check_certifiable()
    return loaded
