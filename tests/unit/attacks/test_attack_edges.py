"""What went wrong once in the attack engine: each of these failed before it was mended."""

import json
from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest
from rich.console import Console
from test_attack_loop import (
    Moody,
    broken,
    keywords,
    made_up_texts,
    numbered,
    outcomes,
    recipes,
    right_labels,
    to_negative,
)
from tools.main_path import functions_called

from commands import run_cli
from ranmask import DeletionSmoothedClassifier, SmoothedClassifier, WindowDetector, attack
from ranmask.attacks.api import as_victim
from ranmask.attacks.loop import AttackLoop, Target
from ranmask.attacks.recipe import AttackRecipe, usable
from ranmask.attacks.recipes import RECIPES, AttackResources, build_recipe, uses
from ranmask.attacks.replacements import Candidates
from ranmask.attacks.resources.word_lists import StopWords, Vocabulary
from ranmask.attacks.runs import attack_rows
from ranmask.attacks.search import AnyWords, ByUnknown, LabelsOnly
from ranmask.cli.attack_printing import print_outcome
from ranmask.data.rows import Row, RowSource
from ranmask.errors import ClassifierError, OptionError
from ranmask.models.testing import hashing_classifier, keyword_classifier
from ranmask.runs.stored import stored_lines
from ranmask.runs.task import RunEvents

FUNCTION = ("--plain", "--model", "ranmask.models.testing:keyword_classifier")


def command(*arguments):
    return run_cli("attack", *arguments)


def test_a_classifier_smoothed_by_deletion_is_a_victim_of_its_own_kind():
    smoothed = DeletionSmoothedClassifier(keyword_classifier, mask_rate=0.5, masks=200)
    victim = as_victim(smoothed)
    assert victim.description()["kind"] == "deletion-smoothed"
    target = numbered(["good good good film"], [1])
    [found] = outcomes(victim, to_negative(), target, budget="radius")
    [certificate] = smoothed.certify([found.text])
    assert (found.status, found.radius) == ("failed", certificate.radius)
    [found] = outcomes(victim, to_negative(), target)
    assert found.status == "succeeded"
    assert smoothed.predict([found.adversarial])[0].label_id == found.final_label == 0
    with pytest.raises(OptionError, match="no radius of edits"):
        victim.certify([found.text], "edits")


def test_what_is_smoothed_is_no_model_to_smooth():
    smoothed = SmoothedClassifier(keyword_classifier, keep=1)
    for build in (partial(SmoothedClassifier, keep=1), partial(WindowDetector, labels=["a", "b"])):
        with pytest.raises(OptionError, match="a SmoothedClassifier answers with results"):
            build(smoothed)


@pytest.mark.parametrize("most", [None, 1])
def test_an_impossible_label_costs_no_other_text_a_query(most):
    targets = numbered(["good film", "good film"], [1, 5])
    found = [
        outcomes(
            as_victim(keyword_classifier),
            to_negative(),
            targets,
            together=together,
            most_queries=most,
        )
        for together in (1, 2)
    ]
    assert found[0] == found[1]
    assert [one.status for one in found[0]][1] == "error"
    assert "label 5 is not a class" in found[0][1].error


def test_a_row_that_cannot_be_used_does_not_settle_failures():
    engine = AttackLoop(as_victim(broken), to_negative())
    rows = [Target(1, "good", 1), Target(2, "", 1), *(Target(n, "good", 1) for n in range(3, 60))]
    seen = []
    with pytest.raises(ClassifierError):
        seen.extend(engine.run(rows))
    assert not [one for one in seen if "out of memory" in (one.error or "")]


@pytest.mark.parametrize("together", [1, 2, 8])
def test_a_text_that_was_done_before_does_not_settle_failures(together):
    engine = AttackLoop(as_victim(Moody(after=2)), to_negative(), together=together)
    texts = ["good best fine film great", "the was", *["good film"] * 60]
    seen = []
    with pytest.raises(ClassifierError):
        seen.extend(engine.run(numbered(texts, [1, 0, *[1] * 60])))
    assert not [one for one in seen if one.status == "error"]


def test_the_premise_is_frozen_within_the_radius():
    """A certificate assumes that it stays; recipes that change it otherwise do not, here."""

    def judge(pairs):
        return [[0.9, 0.1] if premise == "one two" else [0.1, 0.9] for premise, _ in pairs]

    recipe = build_recipe("deepwordbug", AttackResources(stop_words=StopWords("none", frozenset())))
    pair = [Target(1, ("one two", "a b c d e"), 0)]
    victim = as_victim(SmoothedClassifier(judge, keep=1))
    [within] = outcomes(victim, recipe, pair, budget="radius")
    assert within.radius == 2 and within.status == "failed"
    [free] = outcomes(victim, recipe, pair)
    assert free.status == "succeeded" and free.changes[0].premise


def test_words_are_those_that_could_change():
    class Cross(Candidates):
        def words(self, attempt, current, position):
            return ["x"]
            yield

    def judge(pairs):
        return [[0.1, 0.9] if premise == "x x x" else [0.9, 0.1] for premise, _ in pairs]

    recipe = AttackRecipe("r", "words", ByUnknown(), Cross(), LabelsOnly(), frozen_premise=False)
    [found] = outcomes(as_victim(judge), recipe, [Target(1, ("one two three", "a"), 0)])
    assert (found.words_changed, found.words) == (3, 4)


def test_half_a_surrogate_in_a_pair_is_written(tmp_path):
    engine = AttackLoop(as_victim(keyword_classifier), to_negative())
    summary = attack_rows(
        engine, RowSource([Row(1, ("a \ud83d", "b"), 1)], 1), tmp_path / "o.jsonl"
    )
    assert summary.errors == 1
    assert [line["text"] for line in stored_lines(tmp_path / "o.jsonl")] == [["a \ud83d", "b"]]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_fresh_masks_are_fresh_whatever_the_seeds(seed):
    base = SmoothedClassifier(hashing_classifier, keep=2, sampling="fresh", masks=3, seed=seed)
    texts = made_up_texts(20)
    targets = numbered(texts, right_labels(base, texts))
    found = outcomes(as_victim(base), recipes()["greedy"], targets, seed=0)
    assert {one.rechecked for one in found if one.status == "succeeded"} == {True, False}


def test_labels_of_numpy_and_labels_that_are_none():
    [found] = attack(keyword_classifier, ["good film"], np.array([1]), to_negative())
    assert json.loads(json.dumps(found.to_dict()))["label"] == 1
    with pytest.raises(OptionError, match="'pos'"):
        attack(keyword_classifier, ["good film"], ["pos"], to_negative())


def test_an_engine_can_be_used_again():
    moody = Moody(after=0)
    engine = AttackLoop(as_victim(moody), to_negative())
    with pytest.raises(ClassifierError):
        list(engine.run(keywords(*["good film"] * 60)))
    moody.after = None
    assert len(list(engine.run(keywords(*["good film"] * 60)))) == 60


def test_two_texts_of_one_number_are_refused():
    engine = AttackLoop(as_victim(keyword_classifier), to_negative())
    with pytest.raises(OptionError, match="number 1"):
        list(engine.run([Target(1, "good film", 1), Target(1, "good film", 1)]))


def test_candidates_that_the_cut_reads_otherwise_are_dropped():
    words = ["u.s", "...", "a b", "", "mr.", "film"]
    assert usable(words, "film", "textattack-0.3.11") == ["mr."]
    assert usable(words, "film", "words") == ["u.s", "...", "mr."]


def test_class_names_in_brackets_are_printed(tmp_path):
    [found] = attack(keyword_classifier, ["good film"], [1], to_negative())
    with (tmp_path / "out").open("w") as file:
        console = Console(record=True, width=100, file=file)
        print_outcome(console, found, ("[neg]", "[pos]"))
    shown = console.export_text()
    assert "[pos]" in shown and "[neg]" in shown


def test_a_plain_victim_has_the_labels_that_were_given(tmp_path):
    (tmp_path / "r.csv").write_text("text,label\ngood film,pos\n")
    given = ("--stop-words", "none", "--labels", "neg,pos", "--label-column", "label")
    result = command("--recipe", "deepwordbug", *FUNCTION, *given, "--input", tmp_path / "r.csv")
    assert result.exit_code == 0, result.output


def test_a_bad_row_lends_no_words_to_the_vocabulary(tmp_path):
    (tmp_path / "r.jsonl").write_text(
        '{"text": "good film", "label": 1}\n{"text": "half \\ud83d pair", "label": 1}\n'
    )
    result = command(
        *("--recipe", "anywords", "--budget", 1, *FUNCTION, "--label-column", "label"),
        *("--input", tmp_path / "r.jsonl"),
    )
    assert [json.loads(line)["status"] for line in result.stdout.splitlines()] == [
        "succeeded",
        "error",
    ]


def test_no_entropy_is_not_less_than_nothing():
    [found] = attack(SmoothedClassifier(keyword_classifier, keep=1), ["good"], [1], to_negative())
    assert "-0.0" not in json.dumps(found.to_dict())


def test_a_tagger_that_is_not_used_is_refused(tmp_path):
    (tmp_path / "r.csv").write_text("text,label\ngood film,1\n")
    given = ("--tagger", "./nowhere", "--stop-words", "none", "--label-column", "label")
    result = command("--recipe", "deepwordbug", *FUNCTION, *given, "--input", tmp_path / "r.csv")
    assert result.exit_code == 2 and "--tagger" in result.output


def test_early_outcomes_are_counted_once(tmp_path):
    slow = " ".join(["good", "best", "great", "fine", "superb"] * 4)
    rows = [Row(1, slow, 1), *(Row(number, f"good film {number}", 1) for number in range(2, 40))]
    path = tmp_path / "o.jsonl"

    def go(after, told):
        engine = AttackLoop(as_victim(Moody(KeyboardInterrupt(), after)), to_negative(), together=4)
        events = RunEvents(started=lambda _, done: told.append(done), progress=told.append)
        attack_rows(engine, RowSource(rows, len(rows)), path, events=events)

    with pytest.raises(KeyboardInterrupt):
        go(30, [])
    written = len(list(stored_lines(path)))
    assert written > 4
    told = []
    with pytest.raises(KeyboardInterrupt):
        go(0, told)
    lines = (tmp_path / "o.jsonl.early").read_text().splitlines()[1:]
    ahead = {json.loads(line)["row"] for line in lines}
    assert told[:2] == [written, sum(row > written for row in ahead)]


def test_any_words_go_for_the_margin_not_for_the_share():
    """``split`` takes more from the true class, but only ``turn`` brings another one closer."""

    def judge(texts):
        rows = []
        for text in texts:
            words = text.split()
            row = [3.0 + words.count("good"), 1.0, 1.0]
            row[1] += 1.2 * words.count("split") + 2 * words.count("turn")
            row[2] += 1.2 * words.count("split")
            rows.append([score / sum(row) for score in row])
        return rows

    words = AttackResources(vocabulary=Vocabulary("made up", ("split", "turn")))
    recipe = build_recipe("anywords", words)
    one_word = replace(recipe, search=AnyWords(best=1))
    [found] = outcomes(as_victim(judge), one_word, [Target(1, "a b c d", 0)], budget=2)
    assert found.status == "succeeded"
    assert {change.after for change in found.changes} == {"turn"}


def test_recipes_say_what_they_take():
    for name in RECIPES:
        assert set(uses(name)) <= {field.name for field in fields(AttackResources)}
        missing = {"neighbours", "masked_lm", "vocabulary"} & set(uses(name))
        if missing:
            with pytest.raises(OptionError, match=f"the recipe {name} needs {missing.pop()}"):
                build_recipe(name, AttackResources())


def test_supplies_are_resources():
    with pytest.raises(OptionError, match=r"vocabulary must be a resource .* not a list"):
        AttackResources(vocabulary=["a"])


class Empty(dict):
    """A resource that holds nothing yet is there all the same."""

    def description(self):
        return {"kind": "empty"}


@pytest.mark.parametrize(
    ("name", "constraints"),
    [
        ("textfooler", ["SimilarWord", "SamePartOfSpeech", "SimilarSentence"]),
        ("bert-attack", ["MostWords", "SimilarSentence"]),
        ("bae", ["SamePartOfSpeech", "SimilarSentence"]),
        ("a2t", ["MostWords", "SamePartOfSpeech", "SimilarSentence", "SimilarWord"]),
        ("hotflip", ["MostWords", "SimilarWord", "SamePartOfSpeech"]),
        ("textbugger", ["SimilarSentence"]),
        ("clare", ["SimilarSentence"]),
    ],
)
def test_resources_that_are_empty_are_there(name, constraints):
    given = {use: Empty() for use in uses(name) if use != "stop_words"}
    recipe = build_recipe(name, AttackResources(**given))
    assert recipe.name == name
    assert [type(one).__name__ for one in recipe.constraints] == constraints


def test_a_long_text_is_asked_about_in_slices(monkeypatch):
    from ranmask.attacks import victims

    base = SmoothedClassifier(keyword_classifier, keep=1, masks=500)
    texts = ["good best film " * 60, "the good film was fine"]
    targets = numbered(texts, [1, 1])
    whole = outcomes(as_victim(base), recipes()["greedy"], targets, most_queries=90)
    monkeypatch.setattr(victims, "_CHARACTERS_AT_ONCE", 1000)
    assert outcomes(as_victim(base), recipes()["greedy"], targets, most_queries=90) == whole


def test_every_text_is_read_once():
    """Candidates are made of the words that were read, not read again."""
    texts = ["good oil good gas good coal good", "good good plot good cast good good"]
    smoothed = SmoothedClassifier(keyword_classifier, keep=1)
    resources = AttackResources(
        vocabulary=Vocabulary("made up", ("awful", "film", "poor")),
        stop_words=StopWords("none", frozenset()),
    )
    for recipe in ("deepwordbug", "anywords"):
        outcomes = []

        def run(recipe=recipe, outcomes=outcomes):
            outcomes += attack(smoothed, texts, [1, 1], recipe, resources=resources)

        called = functions_called(run)
        assert sum(one.queries for one in outcomes) > 10
        assert called["words", "document"] == 2 * len(texts)  # to certify: passed on as read
