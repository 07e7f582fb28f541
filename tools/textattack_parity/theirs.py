"""What TextAttack does: ``python -m tools.textattack_parity.theirs GIVEN.json OUT.json``.

Runs in TextAttack's own environment.  Recipes come from ``AttackRecipe.build`` as they are; only
resources that would be downloaded are replaced, and the generators of DeepWordBug are seeded by
the word.  Steps are recorded by listening to what the search method calls.
"""

from __future__ import annotations

import json
import os
import platform
import random
import sys
import tempfile
from collections import OrderedDict
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

# TextAttack downloads at import unless this file is there.
_CACHE = Path(os.environ.setdefault("TA_CACHE_DIR", tempfile.mkdtemp(prefix="textattack-")))
_CACHE.mkdir(parents=True, exist_ok=True)
(_CACHE / "post_install_check_3").touch()
os.environ["HF_HUB_OFFLINE"] = "1"

import nltk  # noqa: E402
import textattack  # noqa: E402
import torch  # noqa: E402

# A file that the package of 0.3.11 lacks; TextBugger opens it, and does nothing with it.
(Path(textattack.__file__).parent / "shared" / "intentional_homoglyphs.txt").touch()

import transformers  # noqa: E402
from textattack.attack_recipes import (  # noqa: E402
    CLARE2020,
    BAEGarg2019,
    BERTAttackLi2020,
    DeepWordBugGao2018,
    PWWSRen2019,
    TextBuggerLi2018,
    TextFoolerJin2019,
    bae_garg_2019,
    bert_attack_li_2020,
    clare_li_2020,
)
from textattack.constraints.pre_transformation import StopwordModification  # noqa: E402
from textattack.constraints.semantics.sentence_encoders import SentenceEncoder  # noqa: E402
from textattack.shared import AttackedText, WordEmbedding, utils  # noqa: E402
from textattack.transformations import (  # noqa: E402
    WordSwapMaskedLM,
    WordSwapNeighboringCharacterSwap,
    WordSwapRandomCharacterDeletion,
    WordSwapRandomCharacterInsertion,
    WordSwapRandomCharacterSubstitution,
)
from textattack.transformations.word_swaps import word_swap_wordnet  # noqa: E402
from textattack.transformations.word_swaps.word_swap_embedding import (  # noqa: E402
    recover_word_case,
)

from tools.textattack_parity import common  # noqa: E402

RECIPES = {
    "deepwordbug": DeepWordBugGao2018,
    "textfooler": TextFoolerJin2019,
    "bert-attack": BERTAttackLi2020,
    "bae": BAEGarg2019,
    "pwws": PWWSRen2019,
    "textbugger": TextBuggerLi2018,
    "clare": CLARE2020,
}
SORTS = {
    "swap": WordSwapNeighboringCharacterSwap,
    "substitute": WordSwapRandomCharacterSubstitution,
    "delete": WordSwapRandomCharacterDeletion,
    "insert": WordSwapRandomCharacterInsertion,
}
STATUS = {"Successful": "succeeded", "Failed": "failed", "Skipped": "skipped"}


class Wrapper(textattack.models.wrappers.ModelWrapper):
    """The victim of the job at hand."""

    def __init__(self) -> None:
        self.model = None
        self.victim: Any = None

    def __call__(self, text_input_list: Any, **_: Any) -> Any:
        """Probabilities of the classes."""
        return self.victim(text_input_list)


class _TiedError(Exception):
    """Two words are equally important."""


class Traced:
    """One of TextAttack's recipes, and what its search asked for."""

    def __init__(self, name: str) -> None:
        self.name, self.wrapper = name, Wrapper()
        recipe, _, encoder = name.partition(" with ")
        self.attack = RECIPES[recipe].build(self.wrapper)
        if encoder:
            for constraint in self.attack.constraints:
                if isinstance(constraint, SentenceEncoder):
                    constraint.encode = common.sentence_vectors
        else:
            self.attack.constraints = [
                constraint
                for constraint in self.attack.constraints
                if not isinstance(constraint, SentenceEncoder)
            ]
        [stop] = [
            constraint.stopwords
            for constraint in self.attack.pre_transformation_constraints
            if isinstance(constraint, StopwordModification)
        ]
        self.stop_words = stop
        self.listen()

    def listen(self) -> None:
        """Record what goes through the four functions that a search method is given."""
        search = self.attack.search_method
        order = getattr(search, "_get_index_order", None)
        transform = search.get_transformations
        results, indices = search.get_goal_results, search.get_indices_to_order
        self.ranking = False

        def get_indices_to_order(text: Any, **more: Any) -> Any:
            found = indices(text, **more)
            self.indices = list(found[1])
            return found

        def get_goal_results(texts: Any) -> Any:
            found = results(texts)
            if self.ranking and not self.scores:  # PWWS asks more, later
                self.scores = [float(one.score) for one in found[0]]
            return found

        def get_index_order(text: Any, **more: Any) -> Any:
            self.ranking = True
            found = order(text, **more)
            self.ranking = False
            self.order = [int(index) for index in found[0]]
            if self.untied and len(set(self.scores)) < len(self.scores):
                raise _TiedError
            return found

        def get_transformations(current: Any, **more: Any) -> Any:
            if "indices_to_modify" not in more:
                found = transform(current, **more)
                texts = [one.text for one in found]
                self.visits.append([len(texts), common.digest(texts)])
                return found
            # Places of the original text; without this, a word that was split shifts all others.
            found = transform(current, shifted_idxs=True, **more)
            [index] = more["indices_to_modify"]
            [now] = current.convert_from_original_idxs([index])
            self.visits.append([int(index), [_replacement(current, now, t) for t in found]])
            return found

        if order is not None:
            search._get_index_order = get_index_order
        search.get_transformations = get_transformations
        search.get_goal_results = get_goal_results
        search.get_indices_to_order = get_indices_to_order

    def trace(self, job: common.Job) -> dict[str, Any]:
        """Attack a text, with the first victim that gives no two words the same importance."""
        for salt in range(common.SALTS):
            with suppress(_TiedError):
                return self._trace(job, salt, untied=True)
        return self._trace(job, 0, untied=False)

    def _trace(self, job: common.Job, salt: int, untied: bool) -> dict[str, Any]:
        self.untied = untied
        self.wrapper.victim = job.victim(salt)
        self.indices, self.scores, self.order, self.visits = [], [], [], []
        self.attack.clear_cache()
        text = _attacked(job.text)
        result = self.attack.attack(text, job.label(salt))
        status = STATUS[type(result).__name__.removesuffix("AttackResult")]
        final = result.perturbed_result
        scores = dict(zip(self.indices, self.scores, strict=True))
        return {
            "name": job.name,
            "salt": salt,
            "words": list(text.words),
            "positions": sorted(int(index) for index in self.indices),
            "scores": [round(scores[at] * common.GRID) for at in sorted(self.indices)],
            **common.ordered(self.name, self.order, self.visits),
            "queries": int(final.num_queries),
            "status": status,
            "final": None if status == "skipped" else final.attacked_text.tokenizer_input,
            "final_score": None if status == "skipped" else round(float(final.score) * common.GRID),
        }


def _attacked(text: Any) -> Any:
    if isinstance(text, str):
        return AttackedText(text)
    return AttackedText(OrderedDict(zip(("premise", "hypothesis"), text, strict=True)))


def _replacement(current: Any, index: int, found: Any) -> Any:
    """What stands in the word's place; the whole text where that cannot be told."""
    before, after = current.text_until_word_index(index), current.text_after_word_index(index)
    text = found.text
    if text.startswith(before) and text.endswith(after) and len(before) + len(after) < len(text):
        return text[len(before) : len(text) - len(after)]
    return {"text": text}


def seed_typing_errors() -> None:
    """Let typing errors follow from the word, in this process."""
    for sort, kind in SORTS.items():
        kind._get_replacement_words = _seeded(kind._get_replacement_words, sort)


def _seeded(plain: Any, sort: str) -> Any:
    """The same, but both generators start from the word and the sort of the error."""

    def get_replacement_words(self: Any, word: str) -> Any:
        seed = common.chance_seed(word, sort)
        np.random.seed(seed)
        random.seed(seed)
        return plain(self, word)

    return get_replacement_words


class _Gaps:
    """How far those logits of the language model are apart whose order decides."""

    def __init__(self) -> None:
        self.smallest = float("inf")

    def listen(self, swap: Any) -> None:
        """Look at what BERT-Attack looks at: the places of the word's tokens."""
        plain, tokenizer = swap._bert_attack_replacement_words, swap._lm_tokenizer

        def replacement_words(current: Any, index: int, **more: Any) -> Any:
            masked = current.replace_word_at_index(index, tokenizer.mask_token).text
            ids = swap._encode_text(masked)["input_ids"][0].tolist()
            start = ids.index(tokenizer.mask_token_id)
            size = len(tokenizer.encode(current.words[index], add_special_tokens=False))
            top = more["masked_lm_logits"][start : start + size].topk(swap.max_candidates + 1)
            gaps = top.values[:, :-1] - top.values[:, 1:]
            # The tokens of a whole word are sorted by text; those of pieces are combined in order.
            deciding = gaps[:, -1] if size == 1 else gaps
            self.smallest = min(self.smallest, float(deciding.min()))
            return plain(current, index, **more)

        swap._bert_attack_replacement_words = replacement_words


def _use(group: dict[str, Any], gaps: _Gaps) -> None:
    """Put resources where the recipes look for them."""
    words = group["vectors"]
    matrix = common.vectors(words)
    embedding = WordEmbedding(
        matrix,
        {word: place for place, word in enumerate(words)},
        dict(enumerate(words)),
        common.nearest(matrix)[0],
    )
    utils.GLOBAL_OBJECTS["textattack_counterfitted_GLOVE_embedding"] = embedding

    def masked_lm(*args: Any, **kwargs: Any) -> Any:
        swap = WordSwapMaskedLM(*args, masked_language_model=group["language_model"], **kwargs)
        gaps.listen(swap)
        return swap

    bert_attack_li_2020.WordSwapMaskedLM = masked_lm
    bae_garg_2019.WordSwapMaskedLM = masked_lm
    loaded = transformers.AutoModelForMaskedLM.from_pretrained(group["language_model"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(group["language_model"])
    clare_li_2020.transformers = SimpleNamespace(
        AutoModelForCausalLM=SimpleNamespace(from_pretrained=lambda _: loaded),
        AutoTokenizer=SimpleNamespace(from_pretrained=lambda _: tokenizer),
    )
    nltk.pos_tag = _pos_tag if group["tagger"] == "nltk" else _made_up_pos_tag
    word_swap_wordnet.nltk = SimpleNamespace(download=lambda _: True)
    word_swap_wordnet.wordnet = SimpleNamespace(
        langs=lambda: ["eng"],
        synsets=lambda word, lang: [
            SimpleNamespace(lemma_names=lambda lang: common.synonyms(word, words))
        ],
    )


def _pos_of_word_index(self: Any, index: int) -> str:
    """CLARE's tags, which flair would give."""
    if not self._pos_tags:
        self._pos_tags = [tag for _, tag in nltk.pos_tag(self.words, tagset="universal")]
    return self._pos_tags[index]


AttackedText.pos_of_word_index = _pos_of_word_index


_pos_tag = nltk.pos_tag


def _made_up_pos_tag(words: list[str], **_: Any) -> list[tuple[str, str]]:
    return list(zip(words, common.made_up_tags(words), strict=True))


def cuts(strings: list[Any], whole: int, each: int) -> list[dict[str, Any]]:
    """Words; and what is left without each, and the windows around it.

    The latter for the first ``whole`` strings, then for every ``each``-th.
    """
    found = []
    for place, text in enumerate(strings):
        cut = _attacked(text)
        one: dict[str, Any] = {"words": list(cut.words)}
        if place < whole or place % each == 0:
            one["without"] = [
                _given(cut.delete_word_at_index(at).tokenizer_input) for at in range(cut.num_words)
            ]
            one["windows"] = [
                [
                    cut.text_window_around_index(at, float("inf") if size is None else size)
                    for size in common.WINDOWS
                ]
                for at in range(cut.num_words)
            ]
        found.append(one)
    return found


def _given(text: Any) -> Any:
    return text if isinstance(text, str) else list(text)


def run(given: dict[str, Any]) -> dict[str, Any]:
    """All that was asked for."""
    seed_typing_errors()
    packages = ("textattack", "torch", "transformers", "tokenizers", "numpy", "nltk", "jieba")
    groups = {}
    for name, group in given["groups"].items():
        gaps = _Gaps()
        _use(group, gaps)
        jobs = [common.Job(**job) for job in group["jobs"]]
        traces = {}
        stop_words = {}
        for recipe, places in group["recipes"].items():
            sys.stderr.write(f"theirs: {name}, {recipe}\n")
            traced = Traced(recipe)
            stop_words[recipe] = sorted(traced.stop_words)
            traces[recipe] = [traced.trace(jobs[place]) for place in places]
        groups[name] = {
            "traces": traces,
            "stop_words": stop_words,
            "gap": gaps.smallest if gaps.smallest < float("inf") else None,
        }
    return {
        "versions": {"python": platform.python_version(), **{p: version(p) for p in packages}},
        "groups": groups,
        "cuts": cuts(given["strings"], given["whole"], given["each"]),
        "cases": [recover_word_case(word, like) for word, like in given["cases"]],
    }


def main() -> None:
    """Read what is given, write what was found."""
    torch.set_num_threads(1)
    source, target = map(Path, sys.argv[1:3])
    found = run(json.loads(source.read_text(encoding="utf-8")))
    target.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
