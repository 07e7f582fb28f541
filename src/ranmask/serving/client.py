"""A service of ranmask, asked from Python as a classifier is.

    with ranmask.Client("http://127.0.0.1:8000", key=...) as client:
        for certificate in client.certify(["a text", "another"]):
            print(certificate.label, certificate.radius)
        job = client.submit("rows.csv").wait()
        job.save("results.jsonl")

It needs nothing but the standard library: neither a model nor an extra.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, Self
from urllib.parse import quote, urlencode

from ranmask.errors import OptionError, ServiceError, TextError, check_cancelled
from ranmask.results import Certificate, Detection, Prediction, ShownDetection
from ranmask.results.files import check_file, draft, reading, writing
from ranmask.results.records import ShownCertificate
from ranmask.serving.client_http import Calls
from ranmask.words import document, listed

if TYPE_CHECKING:
    from ranmask.attacks.outcome import AttackOutcome
    from ranmask.data.rows import Columns
    from ranmask.runs.task import Outcome
    from ranmask.words import Text

__all__ = ["Client", "Explanation", "Job"]

_BLOCK = 1 << 20
_FIRST_LOOK, _LONGEST_LOOK = 0.1, 5.0


@dataclass(frozen=True)
class Explanation:
    """What `Client.explain` says of a text.

    ``certificate``: with the copies that were asked for.  ``words`` and ``labels``: what its
    positions and numbers mean.  ``answer``: all that the service said, margins included.
    """

    certificate: ShownCertificate
    words: tuple[str, ...]
    labels: tuple[str, ...]
    answer: Mapping[str, Any]


class Client:
    """Asks a service (``ranmask serve``).  Answers are the library's own records.

    Where the service is busy or is about to end (429, 503), it is asked again when it says.
    Connections are kept; threads may share a client.  Options are those of `SmoothingOptions`.

    Args:
        url: Where it is; a path in front of ``/v1`` is kept.
        key: Its API key, where it has one.
        timeout: Seconds to wait for an answer, or for a busy service.
        retries: How often the same is asked again.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        key: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 5,
    ) -> None:
        self._calls = Calls(url, key, timeout, retries)
        self._limits: Mapping[str, int | None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that are open."""
        self._calls.close()

    def certify(
        self, texts: Iterable[Text], *, model: str | None = None, **options: Any
    ) -> list[Certificate]:
        """The label of each text, and what is proved about it, as `SmoothedClassifier.certify`.

        More texts than a request holds are sent in several.  Raises `TextError` for the first text
        that cannot be used.
        """
        found = self._classified("/v1/certify", texts, _question(model, options))
        return [Certificate.from_dict(result) for result in found]

    def predict(
        self, texts: Iterable[Text], *, model: str | None = None, **options: Any
    ) -> list[Prediction]:
        """The label of each text, without a certificate; otherwise as `certify`."""
        found = self._classified("/v1/predict", texts, _question(model, options))
        return [Prediction.from_dict(result) for result in found]

    def detect(
        self, texts: Iterable[str], *, model: str | None = None, word_values: bool = False
    ) -> list[Detection]:
        """Whether each text is flagged by a detector, and what is proved; otherwise as `certify`.

        ``word_values``: say what each word adds to the score, too; results are then
        `ShownDetection`.
        """
        asked = _question(model, {}) | ({"word_values": True} if word_values else {})
        record = ShownDetection if word_values else Detection
        return [record.from_dict(found) for found in self._classified("/v1/detect", texts, asked)]

    def explain(
        self, text: Text, *, copies: int = 12, model: str | None = None, **options: Any
    ) -> Explanation:
        """The certificate of one text, copies that vote, and the margins that changes leave."""
        asked = {**_question(model, options), "text": text, "copies": copies}
        answer = self._calls.json("POST", "/v1/explain", "copies", asked)
        copied = {**answer["result"], "copies": answer["copies"]}
        certificate = ShownCertificate.from_dict(copied)
        return Explanation(certificate, tuple(answer["words"]), tuple(answer["labels"]), answer)

    def attack(
        self,
        text: Text,
        *,
        budget: int | Literal["radius", "radius+1"] = "radius",
        label_id: int | None = None,
        model: str | None = None,
        **options: Any,
    ) -> AttackOutcome:
        """Try to change the label of one text by changing at most ``budget`` of its words."""
        from ranmask.attacks.outcome import AttackOutcome

        asked = {**_question(model, options), "text": text, "budget": budget}
        if label_id is not None:
            asked["label_id"] = label_id
        return AttackOutcome.from_dict(self._calls.json("POST", "/v1/attack", "status", asked))

    def models(self) -> list[dict[str, Any]]:
        """What is served, each with its name, classes and options; the first is the default."""
        return list(self._about()["models"])

    def submit(
        self,
        rows: str | Path | Iterable[Text],
        *,
        kind: Literal["certify", "predict", "detect"] = "certify",
        model: str | None = None,
        columns: Columns | None = None,
        positive: str | None = None,
        **options: Any,
    ) -> Job:
        """Send a file, or texts, to be worked on in the background.

        Args:
            rows: A txt, csv, tsv, jsonl or parquet file; or texts.
            kind: What to do with each row.
            model: A model by its name; by default the service's first that does this.
            columns: Where texts and labels stand in the file.
            positive: As for `certify_file`.
            options: Of smoothing.
        """
        from ranmask.data.rows import PAIR, Columns, format_of, text_line

        texts = None if isinstance(rows, str | Path) else _checked(rows)
        if texts is not None and columns is not None:
            raise OptionError("columns are those of a file: leave them out for texts")
        columns = columns or Columns()
        if texts and not isinstance(texts[0], str):
            columns = Columns(pair=PAIR)
        given = {
            "kind": kind,
            "model": model,
            "positive": positive,
            "name": Path(rows).name if isinstance(rows, str | Path) else None,
            "format": format_of(Path(rows)) if isinstance(rows, str | Path) else "jsonl",
            "text_column": columns.text,
            "pair_columns": columns.pair and ",".join(columns.pair),
            "label_column": columns.label,
            "keep_columns": ",".join(columns.keep) or None,
            "options": json.dumps(_plain(options)) if options else None,
        }
        query = urlencode({name: value for name, value in given.items() if value is not None})
        with tempfile.TemporaryFile() if texts is not None else _opened(Path(str(rows))) as file:
            file.writelines(map(text_line, texts or ()))
            size, most = file.seek(0, 2), self._most("job_bytes")
            if most is not None and size > most:  # it would be refused while it is being sent
                raise OptionError(f"{size:,} bytes are more than {most:,}: send several files")
            sent = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
            asked = f"/v1/jobs?{query}"
            with self._calls.answer("POST", asked, file, sent, once=True) as response:
                return Job(self._calls, self._calls.parsed(response.read(), "status"))

    def jobs(self) -> list[Job]:
        """The jobs of this key, the newest first."""
        found = self._calls.json("GET", "/v1/jobs", "jobs")["jobs"]
        return [Job(self._calls, about) for about in found]

    def job(self, id: str) -> Job:
        """A job by its id."""
        return Job(self._calls, self._calls.json("GET", f"/v1/jobs/{quote(id, safe='')}", "status"))

    def _about(self) -> Any:
        return self._calls.json("GET", "/v1/models", "models")

    def _most(self, what: str) -> int | None:
        """A limit of the service, asked once."""
        if self._limits is None:
            self._limits = self._about()["limits"]
        return self._limits[what]

    def _classified(
        self, path: str, texts: Iterable[Text], asked: Mapping[str, Any]
    ) -> Iterator[dict[str, Any]]:
        done = 0
        for group in self._groups(_checked(texts), len(json.dumps(asked))):
            while group:
                answer = self._calls.json("POST", path, "results", {**asked, "texts": group})
                # Those that were not done in time come last, and are asked for again.
                results = answer["results"][: len(group) - len(answer.get("unfinished", ()))]
                for place, result in enumerate(results):
                    if "error" in result:
                        raise TextError(result["error"], done + place)
                    yield result
                done += len(results)
                group = group[len(results) :]

    def _groups(self, texts: Sequence[Text], taken: int) -> Iterator[list[Text]]:
        """Texts, so many together as a request may hold."""
        group: list[Text] = []
        size = 0
        for text in texts:
            more = len(json.dumps(text)) + 2
            room = (self._most("body_bytes") or 0) - taken - 20
            if group and (len(group) >= (self._most("texts") or 1) or size + more > room):
                yield group
                group, size = [], 0
            group.append(text)
            size += more
        if group:
            yield group


class Job:
    """A job of a service; what is known of it is as of the last `refresh`.

    ``about`` has all that the service says, as ``rows``, ``rows_failed`` and ``summary``.
    """

    def __init__(self, calls: Calls, about: Mapping[str, Any]) -> None:
        self._calls, self.about = calls, dict(about)

    def __repr__(self) -> str:
        done = f"{self.rows_done} of {self.about['rows']} rows"
        return f"Job({self.id!r}, {self.status}, {done})"

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.about["id"])

    @property
    def status(self) -> str:
        """``queued``, ``running``, ``finished``, ``failed`` or ``deleted``."""
        return str(self.about["status"])

    @property
    def rows_done(self) -> int:
        """Rows that have a result, or an error."""
        return int(self.about["rows_done"])

    @property
    def seconds_left(self) -> float | None:
        """An estimate of how long it will take."""
        left: float | None = self.about["seconds_left"]
        return left

    def refresh(self) -> Self:
        """Ask how far it is."""
        self.about = self._calls.json("GET", f"/v1/jobs/{self.id}", "status")
        return self

    def wait(
        self, timeout: float | None = None, progress: Callable[[Job], None] | None = None
    ) -> Self:
        """Return when it is finished; ``progress`` is called each time it was asked for.

        Raises `ServiceError` where it failed, and `TimeoutError` after ``timeout`` seconds.
        """
        end = None if timeout is None else time.monotonic() + timeout
        look = _FIRST_LOOK
        while True:
            self.refresh()
            if progress is not None:
                progress(self)
            if self.status == "finished":
                return self
            if self.status == "failed":
                raise ServiceError(f"job {self.id} failed: {self.about['error']}")
            if end is not None and time.monotonic() + look > end:
                raise TimeoutError(f"{self!r} after {timeout:g} s")
            check_cancelled()
            time.sleep(look)
            look = min(_LONGEST_LOOK, look * 1.5)

    def save(self, path: str | Path) -> Path:
        """Write its results, those so far, to a .jsonl or .parquet file, which is then whole."""
        path = Path(path)
        format = path.suffix.lower().removeprefix(".")
        if format not in ("jsonl", "parquet"):
            raise OptionError(f"cannot save results as {path}: name it .jsonl or .parquet")
        check_file(path)
        asked = f"/v1/jobs/{self.id}/result?format={format}"
        with (
            self._calls.answer("GET", asked) as response,
            writing(path),
            draft(path) as place,
            place.open("wb") as file,
        ):
            while block := response.read(_BLOCK):
                file.write(block)
        return path

    def results(self) -> Iterator[Outcome]:
        """The rows, with results or errors, in their order, as `read_results` gives them."""
        from ranmask.runs.stored import read_results

        with tempfile.TemporaryDirectory() as folder:
            yield from read_results(self.save(Path(folder) / "results.jsonl"))

    def delete(self) -> None:
        """End it where it is not over, and delete its file and its results."""
        self.about = self._calls.json("DELETE", f"/v1/jobs/{self.id}", "status")


def _question(model: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **({"options": _plain(options)} if options else {}),
        **({"model": model} if model is not None else {}),
    }


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as JSON has them; those that are None are the service's."""
    for name, value in options.items():
        if not isinstance(value, str | int | float | list | tuple | None):
            raise OptionError(f"{name} must be a plain value, not {value!r}", name)
    return {name: value for name, value in options.items() if value is not None}


def _checked(texts: Iterable[Text]) -> list[Text]:
    """Texts in a list; nothing is sent before all of them are known to be usable."""
    found = listed(texts)
    for place, text in enumerate(found):
        document(text, place)
    return found


def _opened(path: Path) -> IO[bytes]:
    with reading(path):
        return path.open("rb")
