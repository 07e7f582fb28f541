"""The two protocols by which a model is asked over HTTP.

``chat``, that of OpenAI's API: ``POST {url}/chat/completions`` with one text, which is answered by
the name of a class.

``json``: ``POST {url}`` with ``{"texts": [...]}``, a pair being ``[premise, hypothesis]``, answered
by an object with one of

    "scores": [[0.9, 0.1], ...]             numbers from 0 to 1, in the order of the labels
    "labels": ["positive", ...]
    "results": [{"label": "positive"}, ...]     as `ranmask serve` answers

one item a text, in their order; null where there is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ranmask.errors import ClassifierError, OptionError
from ranmask.models.answers import Classes, score_table
from ranmask.models.http_client import NoAnswerError
from ranmask.models.readers import checked_answers

_FENCE = re.compile(r"\A\s*```\w*\n")
_AROUND_A_LABEL = " \t\r\n\"'`*."


class Answer(NamedTuple):
    """Scores of the classes, or why there are none; ``final``: asking again is for nothing."""

    scores: Sequence[float] | None
    problem: str = ""
    final: bool = True


class Protocol:
    """What is sent for texts, and what the answer says of them: here, a list of texts as JSON."""

    most_texts: int | None = None
    """Texts that one request may hold; None: any number."""

    def __init__(self, labels: Sequence[str], fields: Mapping[str, Any]) -> None:
        self.labels, self.fields = tuple(labels), fields
        names = [_bare(label) for label in labels if isinstance(label, str)]
        self._places = {name: place for place, name in enumerate(names)}
        if not 2 <= len(labels) == len(self._places) or "" in self._places:
            raise OptionError(
                "labels must be two names or more that differ in more than case, quotes and "
                f"full stops, not {', '.join(map(repr, labels))}",
                "labels",
            )

    def body(self, texts: Sequence[Any]) -> dict[str, Any]:
        """The content of a request; fields that are None are left out."""
        content = {**self.content(texts), **self.fields}
        return {name: value for name, value in content.items() if value is not None}

    def content(self, texts: Sequence[Any]) -> dict[str, Any]:
        """The content of a request, but for the fields that the user adds."""
        return {"texts": [list(text) if isinstance(text, tuple) else text for text in texts]}

    def characters(self, text: Any) -> int:
        """How long the part of a request is that a model reads for a text."""
        return len(text) if isinstance(text, str) else sum(map(len, text))

    def answers(self, found: Any, texts: int) -> list[Answer]:
        """What an answer says of each text, or `NoAnswerError`."""
        readers: dict[str, Callable[[Any], Answer]] = {
            "scores": self._scored,
            "labels": self._named,
            "results": self._result,
        }
        said = found if isinstance(found, dict) else {}
        name = next((name for name in readers if name in said), None)
        if name is None:
            raise NoAnswerError(f"it answered without {', '.join(readers)}", fewer=True)
        if not isinstance(said[name], list) or len(said[name]) != texts:
            held = len(said[name]) if isinstance(said[name], list) else "no list of"
            raise NoAnswerError(f"it answered with {held} {name} for {texts} texts", fewer=True)
        return [readers[name](item) for item in said[name]]

    def _scored(self, item: Any) -> Answer:
        if not isinstance(item, list) or len(item) != len(self.labels):
            told = f"it answered {item!r:.80}, no scores of {', '.join(self.labels)}"
            return Answer(None, told, final=False)
        try:
            table = score_table([item], 1, Classes(self.labels))
            [scores] = checked_answers(table, 1, len(self.labels))
        except ClassifierError as error:
            return Answer(None, error.reason, final=False)
        return Answer(scores.tolist())

    def _result(self, item: Any) -> Answer:
        return self._named(item.get("label") if isinstance(item, dict) else item)

    def _named(self, said: Any, *, final: bool = False) -> Answer:
        place = self._places.get(_bare(said)) if isinstance(said, str) else None
        if place is None:
            told = f"it answered {said!r:.80}, none of {', '.join(self.labels)}"
            return Answer(None, told, final)
        return Answer([float(other == place) for other in range(len(self.labels))])


class ChatProtocol(Protocol):
    """One text a request, between tags that it cannot close; the prompt names the labels."""

    most_texts = 1

    def __init__(self, labels: Sequence[str], fields: Mapping[str, Any], prompt: str) -> None:
        super().__init__(labels, fields)
        self._prompt = prompt.replace("{labels}", "\n".join(labels))

    def content(self, texts: Sequence[Any]) -> dict[str, Any]:
        [text] = texts
        parts = {"text": text} if isinstance(text, str) else {"premise": text[0], "text": text[1]}
        tagged = [f"<{name}>\n{_untagged(part)}\n</{name}>" for name, part in parts.items()]
        messages = [
            {"role": "system", "content": self._prompt},
            {"role": "user", "content": "\n".join(tagged)},
        ]
        return {"messages": messages, "temperature": 0}

    def characters(self, text: Any) -> int:
        return sum(len(message["content"]) for message in self.content([text])["messages"])

    def answers(self, found: Any, texts: int) -> list[Answer]:
        try:
            said = found["choices"][0]["message"]["content"]
        except (KeyError, IndexError, TypeError):
            raise NoAnswerError("it answered with no message of a chat") from None
        return [self._named(said, final=True)]  # it was paid for


def _bare(said: str) -> str:
    """A label without a fence, quotes, stars or full stops around it, in lower case."""
    return _FENCE.sub("", said).strip(_AROUND_A_LABEL).casefold()


def _untagged(text: str) -> str:
    """A text in which no tag of the prompt opens or closes."""
    return re.sub(r"<(?=/?(?:text|premise)>)", "<\\\\", text, flags=re.IGNORECASE)
