"""`EndpointReader`: a model behind an HTTP address, as a reader of whole texts."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ranmask.certificates.votes import Scores
from ranmask.errors import ModelError
from ranmask.models.answer_cache import AnswerCache
from ranmask.models.endpoint import Answer, ChatProtocol, Protocol
from ranmask.models.http_client import Client, Clock, NoAnswerError, Pace, in_threads
from ranmask.models.http_opener import opener
from ranmask.models.readers import Reader, as_given, warn_of
from ranmask.options.endpoint import DEFAULT_TEXTS, EndpointOptions
from ranmask.options.fields import check_saved
from ranmask.results.files import fingerprint
from ranmask.words import Document, Text, documents

_CHARACTERS_PER_TOKEN = 4
_KIND = "endpoint"
_SECONDS_TO_STOP = 0.1
_NO_OPTIONS = ("format", "version", "kind", "labels")


@dataclass(frozen=True)
class Estimate:
    """What asking about texts takes.  Tokens are guessed, at four characters each.

    ``texts`` are different ones that no cache answers, ``cached`` those that it does; ``minutes``:
    at least so many, at the rate that the options allow; ``dollars``: for what is read alone, None
    without a price.  Retries are not counted.
    """

    texts: int
    cached: int
    requests: int
    characters: int
    tokens: int
    minutes: float
    dollars: float | None

    def __str__(self) -> str:
        price = "" if self.dollars is None else f", about ${self.dollars:,.2f}"
        waiting = "" if self.minutes == 0 else f", at least {self.minutes:,.1f} minutes"
        return (
            f"{self.requests:,} requests for {self.texts:,} texts ({self.cached:,} more are in the "
            f"cache): {self.characters:,} characters, about {self.tokens:,} tokens{price}{waiting}"
        )


class EndpointReader(Reader):
    """A model behind an HTTP address, by the protocols of `ranmask.models.endpoint`.

    A text that gets no usable answer has none, and a `ReaderWarning` says how many and why.  A
    refused key, or an address where nothing is, raises `ModelError`.

    Args:
        url: The address.
        labels: Names of the classes; scores come in their order.
        cache: A file of answers, which are then asked for once; several processes may share it.
            Without one each call asks again.
        clock: For tests.
        options: The other fields of `EndpointOptions`, by name.
    """

    labels: tuple[str, ...]
    threads = True

    def __init__(
        self,
        url: str,
        *,
        labels: Sequence[str],
        cache: str | Path | None = None,
        clock: Clock | None = None,
        **options: Any,
    ) -> None:
        self.options = chosen = EndpointOptions(url=url, **options)
        self.labels = tuple(labels)
        self._protocol = Protocol(self.labels, chosen.fields())
        if chosen.protocol == "chat":
            self._protocol = ChatProtocol(self.labels, chosen.fields(), chosen.prompt)
        self._batch = self._protocol.most_texts or chosen.texts_per_request or DEFAULT_TEXTS
        self._cache = None if cache is None else AnswerCache(Path(cache))
        self._pace = Pace(chosen.requests_per_minute, clock or Clock())
        self._opener = opener(url)
        self._room = threading.Semaphore(chosen.parallel)  # of all who ask it

    def read(self, texts: Sequence[Document], classes: int) -> Scores:
        """See `Reader.read`; each different text is asked about once."""
        if classes != len(self.labels):
            raise ModelError(
                f"the endpoint has {len(self.labels)} labels, and the copies {classes} classes"
            )
        keys, asked = self._questions(texts)
        found = self._cached(asked)
        rest = {key: text for key, text in asked.items() if key not in found}
        if rest:
            found.update(self._ask(rest))
        rows = np.full((len(texts), classes), np.nan)
        for place, key in enumerate(keys):
            if (scores := found[key].scores) is not None:
                rows[place] = scores
        warn_of([found[key].problem for key in keys if found[key].scores is None], len(texts))
        return rows

    def estimate(self, texts: Sequence[Text | Document]) -> Estimate:
        """What `read` would send for these texts; nothing is sent."""
        _, asked = self._questions(documents(texts))
        found = self._cached(asked)
        rest = [text for key, text in asked.items() if key not in found]
        requests = -(-len(rest) // self._batch)
        characters = sum(map(self._protocol.characters, rest))
        tokens = -(-characters // _CHARACTERS_PER_TOKEN)
        rate, price = self.options.requests_per_minute, self.options.price
        minutes = 0.0 if rate is None else requests / rate
        dollars = None if price is None else tokens * price / 1e6
        return Estimate(len(rest), len(found), requests, characters, tokens, minutes, dollars)

    @contextmanager
    def keeping(self, path: Path) -> Iterator[None]:
        """In this block answers go into a file as they come, where there is no other cache."""
        before = self._cache
        self._cache = before or AnswerCache(path)
        try:
            yield
        finally:
            self._cache = before

    def description(self) -> dict[str, Any]:
        """What the answers depend on, without the query of the address."""
        named = ["protocol", "model_name", "request_fields"]
        named += ["prompt"] if self.options.protocol == "chat" else []
        found = {name: getattr(self.options, name) for name in named}
        place = self.options.address.partition("?")[0]
        return {"kind": _KIND, "url": place, "labels": list(self.labels), **found}

    def saved(self) -> dict[str, Any]:
        """What ``reader.json`` says of it: labels and options, but for ``key_variable``."""
        options = {**self.options.to_dict(), "key_variable": None}
        given = {name: value for name, value in options.items() if value is not None}
        return {"kind": _KIND, "labels": list(self.labels), **given}

    @classmethod
    def from_saved(
        cls,
        record: Mapping[str, Any],
        where: Path,
        *,
        key_variable: str | None = None,
        cache: str | Path | None = None,
    ) -> EndpointReader:
        """The reader that `saved` told of, from the file ``where``; the key is given again."""
        options = {name: value for name, value in record.items() if name not in _NO_OPTIONS}
        labels = record.get("labels")
        if record.get("kind") != _KIND or "url" not in options or "key_variable" in options:
            raise ModelError(f"{where} holds no endpoint as ranmask saves it")
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise ModelError(f"{where} has labels={labels!r}, which are no list of names")
        check_saved(where, options, EndpointOptions)
        return cls(**options, labels=labels, key_variable=key_variable, cache=cache)

    def _questions(self, texts: Sequence[Document]) -> tuple[list[str], dict[str, Any]]:
        """The digest of each question, and its text by that digest."""
        about = [self.description(), self.options.address]
        shown = [as_given(text) for text in texts]
        keys = [fingerprint({"about": about, "text": text}) for text in shown]
        return keys, dict(zip(keys, shown, strict=True))

    def _cached(self, asked: Mapping[str, Any]) -> dict[str, Answer]:
        answers = {} if self._cache is None else self._cache.read()
        known = {key: answers[key] for key in asked if key in answers}
        return {
            key: Answer(scores, "as the cache says, it answered with none of the labels")
            for key, scores in known.items()
            if scores is None
            or (len(scores) == len(self.labels) and all(0 <= score <= 1 for score in scores))
        }

    @contextmanager
    def _turn(self, stop: threading.Event) -> Iterator[None]:
        """One of ``parallel`` requests, whichever thread asks."""
        while not self._room.acquire(timeout=_SECONDS_TO_STOP):
            if stop.is_set():
                raise NoAnswerError("the run was stopped")
        try:
            yield
        finally:
            self._room.release()

    def _ask(self, asked: Mapping[str, Any]) -> dict[str, Answer]:
        """What the model says, which goes into the cache as it comes."""
        options = self.options
        client = Client(
            options.address,
            options.key(),
            self._pace,
            self._opener,
            timeout=options.timeout,
            retries=options.retries,
            patience=options.patience,
        )

        def work(batch: list[str], stop: threading.Event) -> dict[str, Answer]:
            texts = [asked[key] for key in batch]
            try:
                with self._turn(stop):
                    said = client.post(self._protocol.body(texts), stop)
                answers = self._protocol.answers(said, len(texts))
            except NoAnswerError as problem:
                if problem.fewer and len(batch) > 1:
                    return {key: one for part in batch for key, one in work([part], stop).items()}
                answers = [Answer(None, str(problem), final=False)] * len(batch)
            found = dict(zip(batch, answers, strict=True))
            if self._cache is not None:
                self._cache.add({key: one.scores for key, one in found.items() if one.final})
            return found

        keys = list(asked)
        batches = [keys[start : start + self._batch] for start in range(0, len(keys), self._batch)]
        found: dict[str, Answer] = {}
        for answers in in_threads(work, batches, options.parallel):
            found.update(answers)
        return found
