"""Recipes do what TextAttack 0.3.11 does, step by step.

``tests/data/textattack.json`` is what TextAttack itself did with made-up texts, word vectors, tags
and a tiny language model; see docs/textattack.md.  What ranmask does with them is compared: the
words, those that may be attacked, their importance and order, the replacements that were tried at
each, the queries and the outcome.
"""

import json
import sys
from functools import cache
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[3]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.textattack_parity import common, compare, made_up, ours  # noqa: E402

from ranmask.attacks.resources import MaskedLM, StopWords, WordVectors, load_stop_words  # noqa: E402

THEIRS = json.loads((ROOT / "tests/data/textattack.json").read_text(encoding="utf-8"))
NAMED = made_up.named()
JOBS = common.jobs(NAMED)
WORDS = common.vocabulary((text for _, text in NAMED), made_up.WORDS)
ONE_WORD = {"made-up-8", "made-up-pair-9"}
STRINGS = made_up.strings()
CHINESE, MIXED, TURKISH = made_up.UNLIKE
UNLIKE = {CHINESE: {"words", "without", "windows"}, MIXED: set(), TURKISH: {"windows"}}


@pytest.fixture(scope="module")
def one_thread():
    """Tiny matrices are fastest on one thread, far more so on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def given(one_thread, tmp_path_factory):
    """What ranmask's recipes are made with."""
    folder = tmp_path_factory.mktemp("language-model")
    common.write_language_model(folder, WORDS)
    return ours.Resources(
        WORDS,
        WordVectors(WORDS, common.vectors(WORDS)),
        MaskedLM.from_pretrained(folder, "cpu"),
        ours.MadeUpTagger(),
        StopWords("nltk", frozenset(THEIRS["stop_words"]["nltk"])),
    )


@pytest.fixture(scope="module")
def replayed(given):
    """Our traces of a recipe, by the names of the texts."""

    @cache
    def traces(recipe):
        jobs = [JOBS[place] for place in common.fitting(recipe, JOBS, WORDS)]
        salts = [trace["salt"] for trace in THEIRS["traces"][recipe]]
        return {trace["name"]: trace for trace in ours.traces(given, recipe, jobs, salts)}

    return traces


@pytest.mark.parametrize(
    ("recipe", "their"),
    [
        pytest.param(recipe, trace, id=f"{recipe.replace(' ', '-')}-{trace['name']}")
        for recipe, traces in THEIRS["traces"].items()
        for trace in traces
    ],
)
def test_every_step_is_theirs(replayed, recipe, their):
    our = replayed(recipe)[their["name"]]
    apart, why = compare.difference(their, our)
    by_deletion = recipe.startswith(("textfooler", "bae", "textbugger"))
    if by_deletion and their["name"] in ONE_WORD:
        assert why == "one word"
        # Where the premise is attacked too, the word that is not asked about comes last.
        assert apart[:2] == ["scores", "queries"] or their["name"].startswith("made-up-pair")
    elif (recipe, their["name"]) == ("clare with sentence encoder", "made-up-6"):
        assert (apart, why) == (["visits", "queries"], "either word")
    else:
        for step in apart:
            assert compare.steps(our)[step] == compare.steps(their)[step], step


def test_candidates_of_several_words_are_dropped():
    """TextAttack tries them; here they are the one difference."""
    words = common.vocabulary(made_up.ODD_TEXTS, made_up.ODD)
    vectors = WordVectors(words, common.vectors(words))
    given = ours.Resources(words, vectors, None, ours.MadeUpTagger())
    jobs = common.jobs(made_up.odd())
    salts = [trace["salt"] for trace in THEIRS["odd"]]
    for their, our in zip(
        THEIRS["odd"], ours.traces(given, "textfooler", jobs, salts), strict=True
    ):
        assert compare.difference(their, our)[1] == "several words"
        assert not all(compare.one_word(word) for _, found in their["visits"] for word in found)
        assert all(compare.one_word(word) for _, found in our["visits"] for word in found)


def test_what_was_recorded_is_worth_replaying():
    assert THEIRS["versions"]["textattack"] == "0.3.11"
    assert set(THEIRS["traces"]) == set(common.RECIPES)
    assert THEIRS["seed"] == common.SEED
    for recipe, traces in THEIRS["traces"].items():
        statuses = [trace["status"] for trace in traces]
        if recipe.startswith("clare"):  # a few texts, each with thousands of candidates
            assert len(traces) >= 12
            assert all(statuses.count(one) >= 2 for one in ("succeeded", "failed"))
            continue
        assert len(traces) >= 40
        assert all(statuses.count(one) >= 2 for one in ("succeeded", "failed", "skipped")), recipe


def test_textfooler_leaves_the_premise_alone_and_the_others_do_not():
    """Or the traces of pairs could not tell."""
    for recipe, traces in THEIRS["traces"].items():
        if recipe.startswith("clare"):  # it ranks no words
            continue
        pairs = {trace["name"]: trace for trace in traces}
        pair = pairs["made-up-pair-6"]
        premise = len(made_up.PAIRS[6][0].split())
        assert (min(pair["positions"]) >= premise) == recipe.startswith("textfooler")


def test_stop_words():
    words = sorted(load_stop_words("textfooler").words)
    assert common.digest(words) == THEIRS["stop_words"]["textfooler_sha256"]


@pytest.mark.parametrize("place", range(len(STRINGS)))
def test_cuts(place):
    [our] = ours.cuts([STRINGS[place]], whole=1, each=1)
    our["windows"] = common.digest(our["windows"])
    apart = {step for step, found in THEIRS["cuts"][place].items() if our[step] != found}
    assert apart == UNLIKE.get(STRINGS[place], set())


def test_case():
    assert ours.cases(made_up.cases()) == THEIRS["cases"]


class TestRecord:
    """What the tool wrote when both were there, and what the page says of it."""

    FOLDER = ROOT / "tools/textattack_parity"
    OUTCOME = json.loads((FOLDER / "outcome.json").read_text(encoding="utf-8"))
    WRAPPED = json.loads((FOLDER / "wrapped.json").read_text(encoding="utf-8"))
    PAGE = (ROOT / "docs/textattack.md").read_text(encoding="utf-8")

    def test_every_difference_has_a_reason(self):
        assert self.OUTCOME["versions"]["theirs"]["textattack"] == "0.3.11"
        assert self.OUTCOME["seed"] == common.SEED
        assert {one["why"] for one in self.OUTCOME["differences"]} <= set(compare.REASONS)
        for group in self.OUTCOME["groups"].values():
            assert all(recipe["same_stop_words"] for recipe in group["recipes"].values())

    def test_the_page_shows_it(self):
        for name, counts in self.OUTCOME["groups"]["texts"]["recipes"].items():
            shown = [name, *(counts[one] for one in ("texts", "succeeded", "failed", "skipped"))]
            shown += [counts["queries"], counts["candidates"], counts["identical_in_every_step"]]
            assert f"| {' | '.join(map(str, shown))} |" in self.PAGE
        cuts = self.OUTCOME["cuts"]
        for step, total in cuts["strings"].items():
            assert f"{cuts['identical'][step]} of {total}" in " ".join(self.PAGE.split())
        assert cuts["cases"]["words"] == cuts["cases"]["identical"] == 242

    def test_with_ties_settled_the_wrapper_gives_the_same_attacks(self):
        compared = self.WRAPPED["compared"]
        for name, counts in compared.items():
            if "earlier" in name:
                assert set(counts.values()) == {counts["texts"]}
        assert compared["as shipped, as TextAttack sorts"]["same_text"] == 96
        assert compared["votes of 100, as TextAttack sorts"]["same_text"] == 38
