"""The engine: what becomes of a text depends on nothing that is attacked with it."""

import contextlib
import gc
import json
import math
import zlib
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from ranmask import ClassifierError, OptionError, OutputError, SmoothedClassifier, TextError
from ranmask.attacks import runs, victims
from ranmask.attacks.api import as_victim, attack
from ranmask.attacks.constraints import EditDistance, MostWords, SimilarSentence
from ranmask.attacks.directed import Directed
from ranmask.attacks.loop import AttackLoop, Target
from ranmask.attacks.recipe import AttackRecipe
from ranmask.attacks.recipes import AttackResources
from ranmask.attacks.replacements import (
    AnyWord,
    Candidates,
    LikelyWords,
    OpposingWords,
    Synonyms,
    TypingErrors,
)
from ranmask.attacks.resources.neighbours import NeighbourTable
from ranmask.attacks.resources.word_lists import Vocabulary
from ranmask.attacks.runs import attack_rows
from ranmask.attacks.search import (
    AnyWords,
    AtRandom,
    ByCertificate,
    ByDeletion,
    ByUnknown,
    Greedy,
    LabelsOnly,
    Together,
)
from ranmask.attacks.victims import GRID, Answers, PlainVictim, Question, SmoothedVictim, Victim
from ranmask.certificates.families import sampled_sets
from ranmask.data.rows import Row, RowSource
from ranmask.models.function import FunctionClassifier
from ranmask.models.testing import NEGATIVE, POSITIVE, hashing_classifier, keyword_classifier
from ranmask.runs.result_file import read_header
from ranmask.runs.stored import stored_lines
from ranmask.runs.task import RunEvents
from ranmask.words import document, split


def spelt(read):
    """A document as a text."""
    text = " ".join(read.words)
    return text if read.premise is None else (read.premise, text)


def asked(attempt, text, near):
    """A question about texts as they are spelt."""
    return Question(attempt, document(text), document(near))


VOCABULARY = ("film", "plot", "cast", "good", "fine", "awful", "end", "the", "was", "music")
TOGETHER = (1, 2, 7, 64)
BATCHES = (1, 3, 1024)


def number_of(text, below):
    return zlib.crc32(repr(text).encode()) % below


def made_up_texts(count=12, longest=8):
    """Texts of 1 to ``longest`` words, some with punctuation."""
    texts = []
    for row in range(count):
        words = [
            VOCABULARY[number_of((row, place), len(VOCABULARY))]
            for place in range(1 + number_of(row, longest))
        ]
        texts.append(" ".join(words) + (", (too)." if row % 4 == 0 else ""))
    return texts


def wordy_classifier(texts):
    """Scores of three classes: every visible word counts, most of it by how it begins.

    Synonyms begin alike here, so that some attacks succeed and some fail.
    """
    rows = []
    for text in texts:
        parts = [1.0, 1.0, 1.0]
        for place, word in enumerate(text.split()):
            parts[number_of(word[:3], 3)] += 2
            parts[number_of((word, place % 2), 3)] += 1.5
            parts[number_of((word, "once more"), 3)] += number_of(word, 16) / 16
        rows.append([part / sum(parts) for part in parts])
    return rows


def table():
    """Three made-up synonyms for every word."""
    return NeighbourTable(
        {word: [f"{word}{end}" for end in ("x", "y", "z")] for word in VOCABULARY}
    )


def lm_losses(documents):
    return [np.array([1.0 + number_of(word, 7) for word in one.words]) for one in documents]


class FakeEncoder:
    """Unit vectors that follow from the sentence."""

    def encode(self, sentences):
        angles = np.array([number_of(sentence, 97) / 97 for sentence in sentences])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    def description(self):
        return {"kind": "fake"}


class FakeMaskedLM:
    """Whole words are its tokens, and the likely ones follow from the text."""

    mask_token = "[MASK]"

    def pieces(self, word):
        return (word,)

    def mask_place(self, text):
        return next(place for place, word in enumerate(text.split()) if "[MASK]" in word)

    def top_tokens(self, texts, count, places):
        return [
            [
                tuple(f"{word[:3]}{number_of((text, n), 5)}" for n in range(count))[
                    : 1 + number_of((text, word), count)
                ]
                for word in map(text.split().__getitem__, own)
            ]
            for text, own in zip(texts, places, strict=True)
        ]

    def continues(self, token, first):
        return False

    def plain(self, token):
        return token


def recipes():
    stop = frozenset({"the", "was"})
    neighbours = Synonyms(table())
    tokenization = "textattack-2021"
    return {
        "greedy": AttackRecipe(
            "greedy", tokenization, ByDeletion(), neighbours, Greedy(), (), stop
        ),
        "typos": AttackRecipe(
            "typos", tokenization, ByUnknown(), TypingErrors(), Greedy(), (EditDistance(3),), stop
        ),
        "together": AttackRecipe("together", "words", ByDeletion(), neighbours, Together(2, 5)),
        "labels": AttackRecipe(
            "labels", tokenization, AtRandom(), neighbours, LabelsOnly(starts=6)
        ),
        "anywords": AttackRecipe(
            *("anywords", "words", ByUnknown(), AnyWord(VOCABULARY), AnyWords(3, 5)), budget=2
        ),
        "margin": AttackRecipe("margin", tokenization, ByDeletion(), neighbours, Directed()),
        "opposing": AttackRecipe(
            *("opposing", "words", ByUnknown(), OpposingWords(VOCABULARY, 2, few=1), Directed()),
            budget=2,
        ),
        "models": AttackRecipe(
            *("models", "words", ByUnknown(), LikelyWords(FakeMaskedLM(), 4), Greedy()),
            (MostWords(0.5), SimilarSentence(0.8, "cosine", "current", 5, True)),
        ),
    }


RECIPES = ("greedy", "typos", "together", "labels", "anywords", "margin", "opposing", "models")
VICTIMS = ("plain", "vote", "score", "logit", "fresh", "lm")


def classifier(kind, batch_size=1024, base=wordy_classifier):
    function = FunctionClassifier(base, batch_size=batch_size)
    if kind == "plain":
        return function
    if kind in ("fresh", "lm"):
        losses = lm_losses if kind == "lm" else None
        return SmoothedClassifier(function, keep=2, sampling=kind, masks=9, word_losses=losses)
    return SmoothedClassifier(function, keep=2, ensemble=kind, masks=15)


class Reference(Victim):
    """What a victim should say: every text by itself, all copies of it scored, nothing kept."""

    labels = None

    def __init__(self, base):
        self.base = base

    def description(self):
        return {}

    def answer(self, questions):
        rows = [self.one(spelt(question.text)) for question in questions]
        return Answers(np.array([label for label, _ in rows]), np.array([row for _, row in rows]))

    def one(self, text):
        if isinstance(self.base, SmoothedClassifier):
            [said] = self.base.predict([text])
            shares = [votes / said.masks for votes in said.votes]
            if said.ensemble == "score":
                shares = [mean / math.fsum(said.scores) for mean in said.scores]
            if said.ensemble == "logit":
                powers = [math.exp(mean) for mean in said.scores]
                shares = [power / math.fsum(powers) for power in powers]
            label = said.label_id
        else:
            # As a function sees it, without blanks at the ends.
            [shares] = wordy_classifier([" ".join(text.split())])
            label = shares.index(max(shares))
        return label, [round(share / GRID) * GRID for share in shares]

    def again(self):
        base = self.base
        if isinstance(base, FunctionClassifier) or base.options.sampling == "fixed":
            return None
        return Reference(base.with_options(seed=base.options.seed + 1))


class Noting:
    """Wraps a victim and notes what it is asked for each attempt, one question after another."""

    def __init__(self, victim):
        self.asked = {}
        answer = victim.answer

        def noted(questions):
            answers = answer(questions)
            for question in questions:
                self.asked.setdefault(question.attempt, []).append(spelt(question.text))
            return answers

        victim.answer = noted
        self.victim = victim


def numbered(texts, labels):
    return [
        Target(number, text, label)
        for number, (text, label) in enumerate(zip(texts, labels, strict=True), 1)
    ]


def right_labels(base, texts):
    """What a classifier says of the texts; for every fifth, another label."""
    said = [Reference(base).one(text)[0] for text in texts]
    return [(label + 1) % 3 if place % 5 == 4 else label for place, label in enumerate(said)]


def outcomes(victim, recipe, targets, **options):
    recipe = replace(recipe, sentence_encoder=FakeEncoder(), masked_lm=FakeMaskedLM())
    engine = AttackLoop(victim, recipe, **options)
    return list(engine.run(targets))


def course_of(outcome):
    """An outcome without what only plain, or only certified, victims have."""
    return {**outcome.to_dict(), "reverted": None, "radius": None}


class TestLockStep:
    """The same outcomes and the same questions, whatever is attacked together."""

    @pytest.mark.parametrize(
        ("kind", "name"),
        [
            *((kind, name) for kind in VICTIMS for name in ("greedy", "anywords")),
            *(("vote", name) for name in ("typos", "together", "labels", "models")),
            *((kind, "margin") for kind in ("vote", "logit", "plain", "fresh")),
            *(("plain", name) for name in ("models", "opposing")),
            ("fresh", "labels"),
        ],
    )
    def test_as_the_reference_and_the_same_for_any_number_at_once(self, kind, name):
        base, recipe = classifier(kind), recipes()[name]
        texts = made_up_texts()
        targets = numbered(texts, right_labels(base, texts))
        reference = Noting(Reference(base))
        expected = [course_of(one) for one in outcomes(reference.victim, recipe, targets)]
        statuses = {one["status"] for one in expected}
        assert "skipped" in statuses and statuses & {"succeeded", "failed"}
        first = None
        for together, batch in zip((*TOGETHER, 64), (*BATCHES, 1024, 2), strict=True):
            noting = Noting(as_victim(classifier(kind, batch)))
            found = outcomes(noting.victim, recipe, targets, together=together)
            assert [one.number for one in found] == list(range(1, len(texts) + 1))
            assert [course_of(one) for one in found] == expected
            assert noting.asked == reference.asked
            assert [one.queries for one in found] == [
                len(noting.asked[one.number]) for one in found
            ]
            first = first or found
            assert found == first  # what only plain victims have included

    @pytest.mark.parametrize("name", RECIPES)
    def test_attacks_do_something(self, name):
        """Else the other tests compare nothing with nothing."""
        base = classifier("vote")
        texts = made_up_texts(30)
        targets = numbered(texts, right_labels(base, texts))
        found = outcomes(as_victim(base), recipes()[name], targets)
        counts = {s: sum(one.status == s for one in found) for s in ("succeeded", "failed")}
        assert counts["succeeded"] >= 3 and counts["failed"] >= 3, counts
        assert sum(one.queries for one in found) > 100

    @pytest.mark.parametrize("copies", [1, 7, 100])
    def test_as_many_copies_at_once_as_one_likes(self, copies, monkeypatch):
        base, recipe = classifier("vote"), recipes()["greedy"]
        texts = made_up_texts()
        targets = numbered(texts, right_labels(base, texts))
        expected = outcomes(as_victim(base), recipe, targets)
        monkeypatch.setattr(victims, "COPIES_AT_ONCE", copies)
        assert outcomes(as_victim(base), recipe, targets) == expected

    def test_a_text_alone_with_its_number(self):
        base, recipe = classifier("vote"), recipes()["typos"]
        texts = made_up_texts()
        targets = numbered(texts, right_labels(base, texts))
        together = outcomes(as_victim(base), recipe, targets)
        for target, expected in zip(targets, together, strict=True):
            assert outcomes(as_victim(base), recipe, [target]) == [expected]

    def test_the_number_and_the_seed_matter(self):
        recipe = recipes()["typos"]
        target = Target(1, "an extraordinarily wonderful film", 1)
        other = Target(2, target.text, target.label)

        def asked(target, **options):
            noting = Noting(as_victim(keyword_classifier))
            outcomes(noting.victim, recipe, [target], **options)
            return noting.asked[target.number]

        assert asked(target) == asked(target) != asked(other)
        assert asked(target, seed=1) != asked(target)

    def test_the_victim_is_asked_when_all_searches_wait_for_it(self):
        """So that its batches are full, though one text has sentences to compare before."""
        long = "film plot cast good fine end music"
        targets = numbered(["film plot cast", long, long], [0, 0, 0])

        class Counting(Reference):
            calls = 0

            def one(self, text):
                return 0, [0.75, 0.25]

            def answer(self, questions):
                self.calls += 1
                return super().answer(questions)

        def calls(*targets):
            victim = Counting(None)
            outcomes(victim, recipes()["models"], targets)
            return victim.calls

        alone = [calls(target) for target in targets]
        assert min(alone) < max(alone) == calls(*targets)

    def test_what_is_known_of_a_text_is_forgotten_when_it_is_done(self):
        victim = SmoothedVictim(classifier("vote"))
        forgotten = []
        forget = victim.forget

        def noted(attempt):
            forgotten.append(attempt)
            forget(attempt)

        victim.forget = noted
        texts = made_up_texts()
        outcomes(victim, recipes()["greedy"], numbered(texts, right_labels(victim.smoothed, texts)))
        assert sorted(forgotten) == list(range(1, len(texts) + 1))

    def test_outcomes_wait_for_slower_texts_and_few_pile_up(self):
        """The first text is long, the others are done at once."""
        taken = []

        def targets():
            for number in range(1, 60):
                taken.append(number)
                yield Target(number, "good film " * 20 if number == 1 else "the was", 1)

        engine = AttackLoop(as_victim(keyword_classifier), recipes()["greedy"], together=3)
        run = engine.run(targets())
        first = next(run)
        assert first.number == 1 and len(taken) <= 12
        assert [one.number for one in run] == list(range(2, 60))

    @pytest.mark.parametrize("together", TOGETHER)
    def test_or_as_they_finish(self, together):
        base, recipe = classifier("vote"), recipes()["greedy"]
        texts = [*made_up_texts(), ""]
        targets = numbered(texts, [*right_labels(base, texts[:-1]), 0])
        expected = outcomes(as_victim(base), recipe, targets)
        run = AttackLoop(as_victim(base), recipe, together=together).run(targets, in_order=False)
        found = list(run)
        assert sorted(found, key=lambda one: one.number) == expected
        assert (found == expected) == (together == 1)


class TestIncremental:
    """A smoothed victim computes only the copies that show a difference, and is exact."""

    def answered(self, victim, questions):
        answers = victim.answer(questions)
        return answers.labels.tolist(), answers.shares.tolist()

    def test_copies_that_are_computed(self):
        """Of 4 words each copy shows 1: 4 copies, and one for each word that differs."""
        victim = SmoothedVictim(SmoothedClassifier(keyword_classifier, keep=1))
        near = "good film fine cast"
        victim.answer([asked(1, near, near)])
        assert victim.copies_scored == 4
        texts = ["bad film fine cast", "bad film poor cast", near]
        victim.answer([asked(1, text, near) for text in texts])
        assert victim.copies_scored == 4 + 1 + 2 + 0
        moved = "bad film fine cast"
        texts = ["bad plot fine cast", "bad film fine plot"]
        victim.answer([asked(1, text, moved) for text in texts])
        assert victim.copies_scored == 7 + 1 + 2  # the new neighbour, and its variations
        victim.forget(1)
        victim.answer([asked(1, near, near)])
        assert victim.copies_scored == 10 + 4

    def test_pairs_of_kept_words(self):
        victim = SmoothedVictim(SmoothedClassifier(hashing_classifier, keep=2))
        near = "a b c d e"
        victim.answer([asked(1, near, near)])
        assert victim.copies_scored == math.comb(5, 2)
        victim.answer([asked(1, "a b c d x", near)])
        assert victim.copies_scored == 10 + 4
        victim.answer([asked(1, "y b c d x", near)])
        assert victim.copies_scored == 14 + 10 - math.comb(3, 2)

    def test_another_number_of_words_is_computed_whole(self):
        victim = SmoothedVictim(SmoothedClassifier(keyword_classifier, keep=1))
        near = "good film fine cast"
        victim.answer([asked(1, near, near)])
        victim.answer([asked(1, "good film cast", near)])
        assert victim.copies_scored == 4 + 3

    def test_attempts_do_not_mix(self):
        base = classifier("vote")
        victim = SmoothedVictim(base)
        texts = ["film plot cast end", "good plot cast end", "music was the end"]
        questions = [
            asked(attempt, other, text)
            for attempt, text in enumerate(texts)
            for other in (text, text.replace("end", "endx"), text.replace("plot", "plotz"))
        ]
        expected = self.answered(Reference(base), questions)
        assert self.answered(victim, questions) == expected
        shuffled = questions[::2] + questions[1::2]
        assert self.answered(victim, shuffled) == self.answered(Reference(base), shuffled)

    def test_the_same_text_is_answered_as_before_when_others_were_asked_about(self):
        base = classifier("score")
        victim = SmoothedVictim(base)
        rng = np.random.default_rng(0)
        near = text = "film plot cast good fine"
        for _ in range(60):
            words = text.split()
            words[rng.integers(5)] = VOCABULARY[rng.integers(10)]
            text = " ".join(words)
            if rng.random() < 0.3:
                near = text
            question = [asked(1, text, near)]
            assert self.answered(victim, question) == self.answered(Reference(base), question)

    def test_words_that_are_not_read(self):
        class ShortSighted(FunctionClassifier):
            def words_read(self, document):
                return min(3, len(document.words))

        base = SmoothedClassifier(ShortSighted(hashing_classifier), keep=2)
        victim = SmoothedVictim(base)
        near = "a b c d e"
        others = ["x b c d e", "a b x d x", "a b c x e", "a b"]
        questions = [asked(1, text, near) for text in (near, *others)]
        assert self.answered(victim, questions) == self.answered(Reference(base), questions)
        assert victim.copies_scored == 3 + 2 + 2 + 0 + 1

    def test_pairs(self):
        def judge(pairs):
            return hashing_classifier([" / ".join(pair) for pair in pairs])

        base = SmoothedClassifier(judge, keep=2)
        near = ("a premise", "a b c d")
        others = [("a premise", "a x c d"), ("another premise", "a b c d"), ("another", "x b c x")]
        questions = [asked(1, text, near) for text in (near, *others, near)]
        assert self.answered(SmoothedVictim(base), questions) == self.answered(
            Reference(base), questions
        )

    def test_fixed_samples_of_other_certificates(self):
        base = SmoothedClassifier(
            hashing_classifier, keep=2, certificate="ablation", masks=20, selection_masks=11
        )
        near = "a b c d e f"
        questions = [asked(1, text, near) for text in (near, "x b c d e f", "a b c d e y")]
        victim = SmoothedVictim(base)
        assert self.answered(victim, questions) == self.answered(Reference(base), questions)
        assert 11 < victim.copies_scored < 33


class TestVictims:
    def test_as_victim(self):
        smoothed = SmoothedClassifier(keyword_classifier, keep=1)
        assert isinstance(as_victim(smoothed), SmoothedVictim)
        assert isinstance(as_victim(smoothed.base), PlainVictim)
        assert isinstance(as_victim(keyword_classifier), PlainVictim)
        victim = as_victim(smoothed)
        assert as_victim(victim) is victim
        with pytest.raises(OptionError, match="'news-words' is no classifier"):
            as_victim("news-words")

    def test_the_label_is_the_classifiers_own_though_rounded_shares_tie(self):
        victim = as_victim(lambda texts: [[0.5 - 1e-9, 0.5]] * len(texts))
        answers = victim.answer([asked(1, "a", "a")])
        assert answers.labels.tolist() == [1] and answers.shares.tolist() == [[0.5, 0.5]]

    def test_shares_of_logits(self):
        base = FunctionClassifier(lambda texts: [[0.0, math.log(3)]] * len(texts), outputs="logits")
        answers = as_victim(base).answer([asked(1, "a", "a")])
        assert answers.shares[0] == pytest.approx([0.25, 0.75], abs=GRID)

    def test_shares_that_are_no_shares_yet(self):
        victim = as_victim(lambda texts: [[0.0, 0.0] if t == "no" else [0.2, 0.6] for t in texts])
        answers = victim.answer([asked(1, "no", "no"), asked(2, "a", "a")])
        assert answers.shares[0].tolist() == [0.5, 0.5]
        assert answers.shares[1] == pytest.approx([0.25, 0.75], abs=GRID)
        assert (answers.shares / GRID % 1 == 0).all()

    def test_votes(self):
        smoothed = SmoothedClassifier(keyword_classifier, keep=1)
        answers = as_victim(smoothed).answer([asked(1, "good good bad film", "good good bad film")])
        assert answers.shares.tolist() == [[0.5, 0.5]] and answers.labels.tolist() == [0]

    def test_descriptions(self):
        plain = as_victim(keyword_classifier).description()
        smoothed = as_victim(SmoothedClassifier(keyword_classifier, keep=1)).description()
        assert json.loads(json.dumps([plain, smoothed])) == [plain, smoothed]
        assert (plain["kind"], smoothed["kind"]) == ("plain", "smoothed")

    def test_nothing_to_draw_afresh(self):
        assert as_victim(keyword_classifier).again() is None
        assert as_victim(classifier("vote")).again() is None
        again = as_victim(classifier("fresh")).again()
        assert again.smoothed.options.seed == 1 and again.smoothed.options.masks == 9


class Sequel(Candidates):
    """The word with one more letter."""

    def words(self, attempt, current, position):
        return [current.words[position] + "x"]
        yield


def keywords(*texts, label=1):
    return numbered(texts, [label] * len(texts))


def to_negative(**options):
    """Every word may become one of two words, one of them harmful."""
    words = Synonyms(NeighbourTable({word: ["poor", "film"] for word in (*POSITIVE, "music")}))
    fields = {"stop_words": frozenset({"the", "was"}), **options}
    return AttackRecipe("to negative", "words", ByDeletion(), words, Greedy(), **fields)


class TestOutcomes:
    def test_success_by_hand(self):
        [found] = outcomes(
            as_victim(keyword_classifier), to_negative(), keywords("the film was good")
        )
        # Asked about: the text, the text without film, without good, and with poor and film.
        assert (found.status, found.queries, found.error) == ("succeeded", 5, None)
        assert found.adversarial == "the film was poor" and found.final_label == 0
        assert (found.clean_label, found.label, found.words) == (1, 1, 4)
        assert [(c.position, c.before, c.after) for c in found.changes] == [(3, "good", "poor")]
        assert found.words_changed == 1 and found.budget is None and found.radius is None
        assert found.clean_share == pytest.approx(2 / 3, abs=GRID)
        assert found.final_share == pytest.approx(1 / 3, abs=GRID)
        assert found.rechecked is True

    def test_failure_keeps_the_best_text(self):
        weak = AttackRecipe(
            "weak", "words", ByDeletion(), Synonyms(NeighbourTable({"good": ["film"]})), Greedy()
        )
        [found] = outcomes(as_victim(keyword_classifier), weak, keywords("good best great"))
        assert found.status == "failed" and found.adversarial == "film best great"
        assert found.final_label == 1 and found.words_changed == 1
        assert found.rechecked is None and found.reverted is None
        assert found.final_share < found.clean_share

    def test_wrong_before_the_attack(self):
        [found] = outcomes(as_victim(keyword_classifier), to_negative(), keywords("bad music"))
        assert (found.status, found.queries, found.clean_label) == ("skipped", 1, 0)
        assert found.adversarial is None and found.final_label is None and not found.changes
        assert found.rechecked is None and found.entropy is not None

    @pytest.mark.parametrize("ranking", [ByDeletion(), ByUnknown()], ids=["deletion", "unknown"])
    def test_one_word(self, ranking):
        recipe = AttackRecipe(
            "one", "words", ranking, Synonyms(NeighbourTable({"good": ["poor"]})), Greedy()
        )
        [found] = outcomes(as_victim(keyword_classifier), recipe, keywords("good"))
        assert found.status == "succeeded" and found.adversarial == "poor"
        assert found.queries == (2 if isinstance(ranking, ByDeletion) else 3)
        assert found.reverted is None  # with its only word masked nothing would be left

    @pytest.mark.parametrize("name", RECIPES)
    def test_nothing_but_stop_words(self, name):
        recipe = replace(recipes()[name], stop_words=frozenset({"the", "was"}))
        [found] = outcomes(as_victim(keyword_classifier), recipe, keywords("the was the", label=0))
        assert (found.status, found.queries, found.adversarial) == ("failed", 1, "the was the")

    def test_texts_without_attackable_words(self):
        [found] = outcomes(
            as_victim(keyword_classifier), recipes()["greedy"], keywords("... !", label=0)
        )
        assert (found.status, found.queries, found.words) == ("failed", 1, 2)

    def test_texts_that_cannot_be_used(self):
        bad = [
            Target(1, "", 1),
            Target(2, "good film", None),
            Target(3, None, 1, "the row is broken"),
            Target(4, "\ud83d half", 1),
            Target(5, "good film", 1),
            Target(6, ("a premise", " "), 1),
            Target(7, 3, 1),
            Target(8, "good film", -1),
        ]
        for together in (1, 8):
            found = outcomes(as_victim(keyword_classifier), to_negative(), bad, together=together)
            assert [one.number for one in found] == list(range(1, 9))
            assert [one.status for one in found if one.number != 5] == ["error"] * 7
            assert found[4].status == "succeeded" and found[4].queries == 5
            messages = [one.error for one in found]
            for number, message in (
                *((1, "no words"), (2, "no text, or no label"), (3, "the row is broken")),
                *((4, "surrogate"), (6, "the hypothesis has no words"), (7, "expected a string")),
                (8, "label -1 is not a class of the victim"),
            ):
                assert message in messages[number - 1]
            assert all(one.queries == 0 and one.adversarial is None for one in found if one.error)

    def test_a_label_that_the_victim_does_not_have(self):
        named = FunctionClassifier(keyword_classifier, labels=("neg", "pos"))
        targets = numbered(["good film", "good film"], [2, 1])
        for victim in (as_victim(named), as_victim(keyword_classifier)):
            first, second = outcomes(victim, to_negative(), targets)
            assert first.status == "error" and "label 2 is not" in first.error
            assert second.status == "succeeded"

    @pytest.mark.parametrize("kind", ["vote", "score", "plain"])
    def test_entropy(self, kind):
        text = "good best poor good"
        victim, shares = {
            "vote": (SmoothedClassifier(keyword_classifier, keep=1), [1 / 4, 3 / 4]),
            # Each copy that shows a word of a list gives that class 2/3.
            "score": (
                SmoothedClassifier(keyword_classifier, keep=1, ensemble="score"),
                [(3 * 1 / 3 + 2 / 3) / 4, (3 * 2 / 3 + 1 / 3) / 4],
            ),
            "plain": (keyword_classifier, [2 / 6, 4 / 6]),
        }[kind]
        [found] = outcomes(as_victim(victim), to_negative(), keywords(text))
        entropy = -sum(share * math.log(share) for share in shares)
        assert found.entropy == pytest.approx(entropy, abs=1e-4)

    def test_entropy_where_all_agree(self):
        [found] = outcomes(
            as_victim(SmoothedClassifier(keyword_classifier, keep=1)),
            *(to_negative(), keywords("good best fine")),
        )
        assert found.entropy == 0

    def test_reverted(self):
        """By hand: 20 maskings of 1 word of 5; those that hide ``awful`` are right again."""
        recipe = AttackRecipe(
            *("one", "words", ByDeletion(), Synonyms(NeighbourTable({"good": ["awful"]}))), Greedy()
        )
        text = "film good plot cast great"
        seen = set()
        for seed in range(4):
            [found] = outcomes(as_victim(keyword_classifier), recipe, keywords(text), seed=seed)
            assert found.adversarial == "film awful plot cast great"
            kept = sampled_sets(5, 4, 20, seed).tolist()
            assert found.reverted == sum(1 not in places for places in kept) / 20
            seen.add(found.reverted)
        assert len(seen) > 1 and all(0 < share < 1 for share in seen)
        smoothed = SmoothedClassifier(keyword_classifier, keep=4, masks=5)
        [found] = outcomes(as_victim(smoothed), to_negative(), keywords("film good plot cast"))
        assert found.status == "succeeded" and found.reverted is None

    def test_reverted_hides_a_tenth(self):
        victim = as_victim(keyword_classifier)
        text = " ".join(["awful", *["good"] * 24])
        labels = victim.under_masks(document(text), Fraction(1, 10), 20, 0)
        assert len(labels) == 20 and labels.all()
        assert victim.copies_scored == 20
        assert victim.under_masks(document("awful"), Fraction(1, 10), 20, 0) is None

    def test_rechecked_on_fresh_masks(self):
        """With few masks a success is often one of these masks only."""
        base = SmoothedClassifier(hashing_classifier, keep=2, sampling="fresh", masks=3)
        texts = made_up_texts(20)
        found = outcomes(
            as_victim(base), recipes()["greedy"], numbered(texts, right_labels(base, texts))
        )
        successes = [one for one in found if one.status == "succeeded"]
        assert {one.rechecked for one in successes} == {True, False}
        for one in successes:
            [now] = base.predict([one.adversarial])
            assert now.label_id == one.final_label != one.label
            [fresh] = base.with_options(seed=1).predict([one.adversarial])
            assert one.rechecked == (fresh.label_id != one.label)
        assert {one.rechecked for one in found if one.status == "failed"} <= {None}

    def test_fixed_masks_need_no_second_look(self):
        base = SmoothedClassifier(hashing_classifier, keep=2, masks=3)
        texts = made_up_texts(20)
        found = outcomes(
            as_victim(base), recipes()["greedy"], numbered(texts, right_labels(base, texts))
        )
        assert {one.rechecked for one in found if one.status == "succeeded"} == {True}

    def test_labels_only_is_told_no_score(self):
        """Nor does it miss one: shares that are not numbers change nothing."""

        class Poisoned(Reference):
            def answer(self, questions):
                answers = super().answer(questions)
                return Answers(answers.labels, np.full_like(answers.shares, np.nan))

        def told(outcome):
            shares = ("clean_share", "final_share", "entropy")
            return {key: v for key, v in outcome.to_dict().items() if key not in shares}

        base = classifier("vote")
        texts = made_up_texts(20)
        targets = numbered(texts, right_labels(base, texts))
        expected = outcomes(Reference(base), recipes()["labels"], targets)
        poisoned = outcomes(Poisoned(base), recipes()["labels"], targets)
        assert [told(one) for one in poisoned] == [told(one) for one in expected]
        successes = [one for one in expected if one.status == "succeeded"]
        assert successes and all(one.final_share is None for one in successes)

    @pytest.mark.parametrize("name", RECIPES)
    def test_no_attack_changes_the_number_of_words(self, name):
        class Spaced(Candidates):
            def __init__(self, inner):
                self.inner = inner

            def words(self, attempt, current, position):
                found = yield from self.inner.words(attempt, current, position)
                return [*found, "", " ", "new york", "a\u00a0b", "\tx"]

        recipe = recipes()[name]
        base = classifier("vote")
        texts = made_up_texts()
        targets = numbered(texts, right_labels(base, texts))
        noting = Noting(as_victim(base))
        spaced = replace(recipe, candidates=Spaced(recipe.candidates))
        found = outcomes(noting.victim, spaced, targets)
        assert found == outcomes(as_victim(base), recipe, targets)
        if not isinstance(recipe.ranking, ByDeletion):
            for target in targets:
                counts = {len(split(text)) for text in noting.asked[target.number]}
                assert counts == {len(split(target.text))}


class TestBudgets:
    text = "good best great fine film"

    def certified(self, budget, text=None, label=1, recipe=None):
        victim = as_victim(SmoothedClassifier(keyword_classifier, keep=1))
        targets = numbered([text or self.text], [label])
        [found] = outcomes(victim, recipe or to_negative(), targets, budget=budget)
        return found

    def test_a_number(self):
        for budget in range(4):
            found = self.certified(budget)
            assert found.budget == budget and found.words_changed <= budget
            assert found.radius == 1  # told wherever there is one
            assert found.status == ("succeeded" if budget >= 2 else "failed")

    def test_radius(self):
        """4 of 5 votes: two changes leave 2 of 5 for the label, one 3."""
        [certificate] = SmoothedClassifier(keyword_classifier, keep=1).certify([self.text])
        assert certificate.radius == 1
        found = self.certified("radius")
        assert (found.radius, found.budget, found.status) == (1, 1, "failed")
        assert found.words_changed == 1
        found = self.certified("radius+1")
        assert (found.radius, found.budget, found.status) == (1, 2, "succeeded")
        assert found.words_changed == 2

    def test_of_a_text_without_a_radius(self):
        """A near tie counts against the label, so that not even the text itself is certain."""
        smoothed = SmoothedClassifier(keyword_classifier, keep=1, tolerance=0.9)
        [certificate] = smoothed.certify(["good"])
        assert certificate.radius is None
        for budget, words, status in (("radius", 0, "failed"), ("radius+1", 1, "succeeded")):
            [found] = outcomes(as_victim(smoothed), to_negative(), keywords("good"), budget=budget)
            assert (found.radius, found.budget, found.status) == (None, words, status)

    def test_the_recipes_own_unless_another_is_given(self):
        own = to_negative(budget=1)
        assert self.certified(None, recipe=own).budget == 1
        assert self.certified(2, recipe=own).budget == 2
        assert self.certified(0, recipe=own).budget == 0
        assert self.certified("radius+1", recipe=own).budget == 2

    def test_a_recipe_that_starts_from_the_certificate(self):
        words = AnyWord(tuple(sorted(NEGATIVE)))
        recipe = AttackRecipe(
            "critical", "words", ByCertificate(), words, AnyWords(), budget="radius+1"
        )
        found = self.certified(None, recipe=recipe)
        assert (found.status, found.radius, found.budget) == ("succeeded", 1, 2)
        [certificate] = SmoothedClassifier(keyword_classifier, keep=1).certify([self.text])
        assert {change.position for change in found.changes} == set(certificate.critical_words)
        numbered_budget = self.certified(1, recipe=recipe)
        assert (numbered_budget.radius, numbered_budget.budget) == (1, 1)

    @pytest.mark.parametrize("budget", ["radius", "radius+1"])
    def test_victims_that_prove_nothing_are_refused_at_once(self, budget):
        with pytest.raises(OptionError, match="this victim proves nothing"):
            AttackLoop(as_victim(keyword_classifier), to_negative(), budget=budget)
        with pytest.raises(OptionError, match="cannot be certified"):
            AttackLoop(as_victim(classifier("fresh")), to_negative(), budget=budget)
        critical = AttackRecipe("critical", "words", ByCertificate(), Sequel(), AnyWords())
        with pytest.raises(OptionError, match="this victim proves nothing"):
            AttackLoop(as_victim(keyword_classifier), critical, budget=1)

    @pytest.mark.parametrize(
        ("option", "value", "message"),
        [
            ("together", 0, "together must be a whole number of at least 1, not 0"),
            ("most_queries", 0, "most_queries must be a whole number of at least 1, not 0"),
            ("most_queries", 2.5, "most_queries must be"),
            ("budget", -1, "budget must be a whole number, 'radius' or 'radius\\+1', not -1"),
            ("budget", "half", "not 'half'"),
            ("budget", 1.5, "not 1.5"),
        ],
    )
    def test_wrong_options(self, option, value, message):
        with pytest.raises(OptionError, match=message):
            AttackLoop(as_victim(keyword_classifier), to_negative(), **{option: value})

    @pytest.mark.parametrize("name", sorted({*RECIPES} - {"margin", "opposing"}))
    def test_most_queries(self, name):
        """With fewer queries an attack runs the same course, and ends earlier; unless it plans."""
        base, recipe = classifier("vote"), recipes()[name]
        texts = made_up_texts(8, longest=5)
        targets = numbered(texts, right_labels(base, texts))
        free = Noting(as_victim(base))
        unlimited = outcomes(free.victim, recipe, targets)
        for most in (1, 2, 3, 5, 8, 13, 21):
            noting = Noting(as_victim(base))
            found = outcomes(noting.victim, recipe, targets, most_queries=most, together=3)
            for one, whole in zip(found, unlimited, strict=True):
                assert one.queries == min(most, whole.queries)
                assert noting.asked[one.number] == free.asked[one.number][:most]
                if most >= whole.queries:
                    assert one == whole


def poisoned(texts):
    if any("poison" in text for text in texts):
        raise RuntimeError("choked")
    return keyword_classifier(texts)


def broken(texts):
    raise RuntimeError("out of memory")


class TestFailures:
    texts = ("good film", "fine best", "good poison", "the music was good", "great cast")

    @pytest.mark.parametrize("together", TOGETHER)
    @pytest.mark.parametrize("keep", [None, 1])
    def test_one_text_that_the_victim_chokes_on_costs_one_text(self, together, keep):
        def victim(function):
            return as_victim(function if keep is None else SmoothedClassifier(function, keep=keep))

        found = outcomes(victim(poisoned), to_negative(), keywords(*self.texts), together=together)
        expected = outcomes(victim(keyword_classifier), to_negative(), keywords(*self.texts))
        assert found[2].status == "error" and "RuntimeError: choked" in found[2].error
        assert [found[place] for place in (0, 1, 3, 4)] == [
            expected[place] for place in (0, 1, 3, 4)
        ]

    @pytest.mark.parametrize("together", TOGETHER)
    def test_in_the_middle_of_an_attack(self, together):
        table = {"fine": ["poor"], "music": ["film", "poison"]}
        recipe = AttackRecipe(
            "poisonous", "words", ByDeletion(), Synonyms(NeighbourTable(table)), Greedy()
        )
        texts = ("fine film", "music good good", "fine cast")
        found = outcomes(as_victim(poisoned), recipe, keywords(*texts), together=together)
        expected = outcomes(as_victim(keyword_classifier), recipe, keywords(*texts))
        assert [one.status for one in found] == ["succeeded", "error", "succeeded"]
        assert found[0] == expected[0] and found[2] == expected[2]

    def test_while_certifying(self):
        victim = as_victim(SmoothedClassifier(poisoned, keep=1))
        recipe = to_negative(budget="radius+1")
        found = outcomes(victim, recipe, keywords(*self.texts))
        sound = as_victim(SmoothedClassifier(keyword_classifier, keep=1))
        expected = outcomes(sound, recipe, keywords(*self.texts))
        assert found[2].status == "error" and "choked" in found[2].error
        assert found[:2] + found[3:] == expected[:2] + expected[3:]

    def test_while_it_is_looked_at_again(self):
        """A victim that fails on fresh masks only."""
        smoothed = SmoothedClassifier(hashing_classifier, keep=2, sampling="fresh", masks=3)

        class Failing(SmoothedVictim):
            def again(self):
                return as_victim(SmoothedClassifier(broken, keep=1))

        texts = made_up_texts()
        targets = numbered(texts, right_labels(smoothed, texts))
        expected = outcomes(as_victim(smoothed), recipes()["greedy"], targets)
        found = outcomes(Failing(smoothed), recipes()["greedy"], targets)
        for one, other in zip(found, expected, strict=True):
            if other.status == "succeeded":
                assert one.status == "error" and "out of memory" in one.error
            else:
                assert one == other

    @pytest.mark.parametrize("together", TOGETHER)
    def test_a_broken_victim_stops_the_run_and_none_of_its_texts_is_done(self, together):
        engine = AttackLoop(as_victim(broken), to_negative(), together=together)
        seen = []
        with pytest.raises(
            ClassifierError, match=r"stopped at text \d+: .*failed on \d\d texts.*out of memory"
        ):
            seen.extend(engine.run(keywords(*["good film"] * 100)))
        assert seen == []

    def test_fewer_failures_are_outcomes(self):
        with pytest.raises(ClassifierError, match="failed on 19 texts"):  # it never worked
            outcomes(as_victim(broken), to_negative(), keywords(*["good film"] * 19))
        texts = ["poison"] * 19 + ["good film"] + ["poison"] * 19
        found = outcomes(as_victim(poisoned), to_negative(), keywords(*texts))
        assert [one.status for one in found] == ["error"] * 19 + ["succeeded"] + ["error"] * 19

    def test_those_before_the_failures_are_done(self):
        engine = AttackLoop(as_victim(poisoned), to_negative(), together=4)
        seen = []
        with pytest.raises(ClassifierError, match="stopped at text"):
            seen.extend(engine.run(keywords("good", "poison", "fine", *["poison"] * 30)))
        assert [one.status for one in seen[:3]] == ["succeeded", "error", "succeeded"]
        assert len(seen) < 33 - 20 + 4  # the last 20 are left to a later run

    def test_texts_that_cannot_be_used_are_no_fault_of_the_victim(self):
        found = outcomes(as_victim(broken), to_negative(), [Target(n, "", 1) for n in range(1, 60)])
        assert len(found) == 59

    def test_bugs_are_not_hidden(self):
        class Buggy(Reference):
            def answer(self, questions):
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            outcomes(Buggy(None), to_negative(), keywords("good film"))


class Moody:
    """A function that fails from one call on, until it is mended."""

    def __init__(self, error=None, after=None):
        self.error = error or RuntimeError("out of memory")
        self.after, self.calls = after, 0

    def __call__(self, texts):
        self.calls += 1
        if self.after is not None and self.calls > self.after:
            raise self.error
        return keyword_classifier(texts)


class TestResuming:
    """A run that was stopped and resumed leaves the file that an undisturbed one leaves."""

    def rows(self, count=40):
        words = sorted(POSITIVE)
        texts = [f"{words[n % 8]} film number {n} {words[n % 3]}" for n in range(count)]
        texts[3], texts[7] = "", "awful"
        return [
            Row(number, text, None if number == 6 else "1") for number, text in enumerate(texts, 1)
        ]

    def run(self, path, function, together=1, **options):
        engine = AttackLoop(as_victim(function), to_negative(), together=together, **options)
        return attack_rows(engine, RowSource(self.rows(), 9, {"path": "made up"}), path)

    def files(self, path):
        """The outcomes byte for byte, and the record without the pace of the last sitting."""
        record = read_header(path)
        finished = {
            key: value
            for key, value in record["finished"].items()
            if key not in ("copies_scored", "seconds")
        }
        return list(stored_lines(path)), {**record, "finished": finished}

    @pytest.mark.parametrize(
        ("error", "after"),
        [
            *((KeyboardInterrupt(), after) for after in (0, 1, 9, 37, 60)),
            *((RuntimeError("out of memory"), after) for after in (18, 23, 37, 60)),
        ],
        ids=str,
    )
    def test_stopped_in_the_middle(self, tmp_path, after, error):
        quiet = tmp_path / "quiet.jsonl"
        summary = self.run(quiet, Moody())
        expected = self.files(quiet)
        path = tmp_path / "out.jsonl"
        moody = Moody(error, after)
        with pytest.raises((ClassifierError, KeyboardInterrupt)):
            self.run(path, moody)
        assert quiet.read_bytes().startswith(path.read_bytes())
        done = list(stored_lines(path))
        assert len(done) < len(expected[0]) and (done or after < 9)
        moody.after = None
        assert self.run(path, moody, together=7) == summary
        assert self.files(path) == expected

    def test_stopped_many_times_and_once_in_the_middle_of_a_line(self, tmp_path):
        quiet = tmp_path / "quiet.jsonl"
        self.run(quiet, Moody())
        path = tmp_path / "out.jsonl"
        stops = 0
        for together in (1, 2, 7, 64) * 5:
            try:
                self.run(path, Moody(KeyboardInterrupt(), after=8), together)
                break
            except KeyboardInterrupt:
                stops += 1
            with path.open("ab") as file:
                file.write(b'{"version": 1, "row": 9')
        else:
            self.run(path, Moody())
        assert stops > 2 and self.files(path) == self.files(quiet)

    def long_first(self, count=12):
        """Rows of which the first takes long, so that others are done before it."""
        slow = " ".join(["good", "best", "great", "fine", "superb"] * 4)
        return [Row(1, slow, 1), *(Row(n, f"good film {n}", 1) for n in range(2, count + 1))]

    def stopped_early(self, path):
        """A run that was stopped when some texts were done before their turn: their numbers."""
        engine = AttackLoop(as_victim(Moody(KeyboardInterrupt(), 6)), to_negative(), together=4)
        seen = []
        with pytest.raises(KeyboardInterrupt):
            events = RunEvents(progress=seen.append)
            attack_rows(engine, RowSource(self.long_first(), 12), path, events=events)
        assert path.read_bytes() == b"" and sum(seen)
        early = path.with_name(path.name + ".early").read_text().splitlines()[1:]
        assert len(early) == sum(seen)
        return {json.loads(line)["row"] for line in early}

    def resumed(self, path):
        """The texts that a second sitting asks about first."""
        victim = Noting(as_victim(Moody()))
        engine = AttackLoop(victim.victim, to_negative(), together=4)
        attack_rows(engine, RowSource(self.long_first(), 12), path)
        return set(victim.asked)

    def test_what_was_done_before_its_turn_is_not_done_again(self, tmp_path):
        quiet, path = tmp_path / "quiet.jsonl", tmp_path / "out.jsonl"
        assert self.resumed(quiet) == set(range(1, 13))
        done = self.stopped_early(path)
        assert 1 not in done and len(done) >= 3
        assert self.resumed(path) == set(range(1, 13)) - done
        assert self.files(path) == self.files(quiet)
        names = ("out.jsonl", "quiet.jsonl")
        assert sorted(one.name for one in tmp_path.iterdir()) == sorted(names)

    @pytest.mark.parametrize("damage", ["cut off", "another run", "empty", "gone"])
    def test_a_damaged_file_of_early_ones(self, tmp_path, damage):
        quiet, path = tmp_path / "quiet.jsonl", tmp_path / "out.jsonl"
        self.resumed(quiet)
        done = self.stopped_early(path)
        [early] = [one for one in tmp_path.iterdir() if one.name.endswith(".early")]
        path.with_name("out.jsonl.said").unlink()
        lines = early.read_bytes().splitlines(keepends=True)
        assert len(lines) == 1 + len(done)
        lost = {json.loads(lines[-1])["row"]} if damage == "cut off" else done
        if damage == "cut off":
            early.write_bytes(b"".join(lines)[:-9])
        elif damage == "another run":
            early.write_bytes(b"".join([b'{"run": "other"}\n', *lines[1:]]))
        elif damage == "empty":
            early.write_bytes(b"")
        else:
            early.unlink()
        assert self.resumed(path) == set(range(1, 13)) - (done - lost)
        assert self.files(path) == self.files(quiet) and not early.exists()

    def test_what_was_said_of_texts_under_attack_is_not_asked_again(self, tmp_path):
        """Texts in lock-step end late: a run that is killed must not lose all of them."""
        quiet, path = tmp_path / "quiet.jsonl", tmp_path / "out.jsonl"
        rows = [row for row in self.long_first(60) if row.number != 1]

        def run(to, function):
            noting = Noting(as_victim(function))
            engine = AttackLoop(noting.victim, to_negative(), together=64)
            with contextlib.suppress(KeyboardInterrupt):
                attack_rows(engine, RowSource(rows, 60), to)
            return sum(map(len, noting.asked.values()))

        everything = run(quiet, Moody())
        first = run(path, Moody(KeyboardInterrupt(), 2))
        assert not path.read_bytes() and first > everything / 12  # the first few come first
        assert run(path, Moody()) == everything - first
        assert self.files(path) == self.files(quiet) and len(list(tmp_path.iterdir())) == 2

    def test_garbage_is_looked_for_seldom_while_texts_are_attacked(self, tmp_path):
        usual, seen = gc.get_threshold(), []

        def watched(texts):
            seen.append(gc.get_threshold()[0])
            return keyword_classifier(texts)

        self.run(tmp_path / "out.jsonl", watched)
        in_file = len(seen)
        task = runs.AttackTask(AttackLoop(as_victim(watched), to_negative()), ("0", "1"))
        assert len(list(task.lines(self.rows()))) == 40  # as a worker does
        assert len(seen) > in_file > 0 and min(seen) > 100 * usual[0]
        with pytest.raises(ClassifierError):
            self.run(tmp_path / "broken.jsonl", Moody(after=0))
        assert gc.get_threshold() == usual

    def test_runs_beside_each_other_put_back_how_often_garbage_is_looked_for(self):
        usual = gc.get_threshold()
        first, second = runs.rare_collections(), runs.rare_collections()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert gc.get_threshold()[0] > usual[0]  # the second still runs
        second.__exit__(None, None, None)
        assert gc.get_threshold() == usual

    def test_a_few_are_attacked_first_to_see_how_long_that_takes(self, tmp_path):
        sizes = []

        def noting(texts):
            sizes.append(len(texts))
            return keyword_classifier(texts)

        rows = self.long_first(60)
        for first, together in ((8, 64), (None, 64), (8, 4)):
            sizes.clear()
            loop = AttackLoop(as_victim(noting), to_negative(), together=together)
            seen = [one.number for one in loop.run(runs.targets(rows, None), first=first)]
            assert seen == list(range(1, 61))
            assert sizes[0] == min(first or 60, together, 60), sizes

    def test_what_was_said_of_texts_that_are_done_is_left_out(self, tmp_path, monkeypatch):
        quiet, path = tmp_path / "quiet.jsonl", tmp_path / "out.jsonl"
        self.run(quiet, Moody())
        sizes = []
        for most in (1 << 26, 600):
            monkeypatch.setattr(runs, "_MOST_SAID", most)
            path.unlink(missing_ok=True)
            path.with_name("out.jsonl.said").unlink(missing_ok=True)
            with pytest.raises(KeyboardInterrupt):
                self.run(path, Moody(KeyboardInterrupt(), 60))
            said = path.with_name("out.jsonl.said").read_text()
            sizes.append(len(said))
        assert sizes[1] < sizes[0] / 2
        done = {line["row"] for line in stored_lines(path)}
        assert not done <= {json.loads(line)[0] for line in said.splitlines()[1:]}
        self.run(path, Moody())
        assert self.files(path) == self.files(quiet)

    def test_a_victim_that_is_broken_when_a_run_is_resumed(self, tmp_path):
        """What was said before does not pass for an answer."""
        path = tmp_path / "out.jsonl"
        rows = RowSource([Row(n, f"good film {n}", 1) for n in range(1, 8)], 7)
        for moody in (Moody(KeyboardInterrupt(), 2), Moody(after=0)):
            with pytest.raises((ClassifierError, KeyboardInterrupt)):
                attack_rows(AttackLoop(as_victim(moody), to_negative()), rows, path)
            assert not path.read_bytes()

    def test_again_changes_nothing_and_asks_nothing(self, tmp_path):
        path = tmp_path / "out.jsonl"
        summary = self.run(path, Moody())
        before = self.files(path)
        idle = Moody(after=0)
        assert self.run(path, idle) == summary
        assert self.files(path) == before and idle.calls == 0

    def test_lines(self, tmp_path):
        path = tmp_path / "out.jsonl"
        summary = self.run(path, Moody(), together=7)
        lines = list(stored_lines(path))
        assert [line["row"] for line in lines] == list(range(1, 41))
        assert "no words" in lines[3]["error"] and "no label" in lines[5]["error"]
        assert lines[7]["status"] == "skipped"
        assert (summary.errors, summary.skipped, summary.texts) == (2, 1, 38)
        record = read_header(tmp_path / "out.jsonl")
        values = json.loads(json.dumps(summary.values()))
        assert {key: record["finished"][key] for key in values} == values

    def test_other_settings_are_refused(self, tmp_path):
        path = tmp_path / "out.jsonl"
        self.run(path, Moody())
        for options in ({"budget": 2}, {"seed": 3}, {"most_queries": 9}):
            with pytest.raises(OutputError, match=f"different: {next(iter(options))}"):
                self.run(path, Moody(), **options)
        with pytest.raises(OutputError, match="different: function"):
            self.run(path, keyword_classifier)

    def test_unknown_labels(self, tmp_path):
        path = tmp_path / "out.jsonl"
        named = FunctionClassifier(keyword_classifier, labels=("neg", "pos"))
        rows = [Row(n, "good film", label) for n, label in enumerate(("pos", "POS ", 1, "x", 2), 1)]
        attack_rows(AttackLoop(as_victim(named), to_negative()), RowSource(rows, 5), path)
        lines = list(stored_lines(path))
        assert [line["status"] for line in lines] == ["succeeded"] * 3 + ["error"] * 2
        assert lines[3]["error"] == "unknown label 'x': the classes are neg, pos"


class TestAttack:
    """The whole in one call."""

    def attack(self, *arguments, **options):
        words = Vocabulary("made up", tuple(sorted(NEGATIVE)))
        return attack(*arguments, resources=AttackResources(vocabulary=words), **options)

    def test_by_name(self):
        texts = ["good best film", "bad film", "great cast and plot"]
        smoothed = SmoothedClassifier(keyword_classifier, keep=1)
        found = self.attack(smoothed, texts, [1, 1, 1], "anywords")
        assert [one.number for one in found] == [1, 2, 3]
        assert [one.status for one in found] == ["succeeded", "skipped", "skipped"]
        assert [one.budget for one in found] == [1, 1, 1]
        assert self.attack(smoothed, texts, [1, 1, 1], "anywords", together=1) == found
        assert self.attack(smoothed, texts, [1, 1, 1], "anywords", budget=0)[0].status == "failed"
        assert self.attack(smoothed, texts, [1, 1, 1], "anywords", most_queries=2)[0].queries == 2

    def test_options_are_checked(self):
        with pytest.raises(OptionError, match="2 texts, but 1 labels"):
            self.attack(keyword_classifier, ["a", "b"], [0], "anywords", budget=1)
        with pytest.raises(OptionError, match=r"recipe must be one of textfooler.*not 'x'"):
            self.attack(keyword_classifier, ["a"], [0], "x")
        with pytest.raises(OptionError, match=r"preset must be one of ranmask-2021.*not 'x'"):
            self.attack(keyword_classifier, ["a"], [0], "anywords", preset="x")
        with pytest.raises(TextError, match="text 1: the text has no words"):
            self.attack(keyword_classifier, ["a", " "], [0, 0], "anywords", budget=1)
        with pytest.raises(TextError, match="not one string"):
            self.attack(keyword_classifier, "good", [0, 0, 0, 0], "anywords", budget=1)
        with pytest.raises(OptionError, match="needs neighbours: a table of synonyms"):
            self.attack(keyword_classifier, ["a"], [0], "textfooler")
        with pytest.raises(OptionError, match="needs masked_lm: a masked language model"):
            self.attack(keyword_classifier, ["a"], [0], "bert-attack")
        with pytest.raises(OptionError, match="needs vocabulary: words that"):
            attack(keyword_classifier, ["a"], [0], "critical")

    def test_pairs(self):
        def judge(pairs):
            return keyword_classifier([hypothesis for _, hypothesis in pairs])

        pair = ("a bad premise", "good best film")
        smoothed = SmoothedClassifier(judge, keep=1)
        for recipe in ("anywords", "critical"):
            [found] = self.attack(smoothed, [pair], [1], recipe)
            assert found.status == "succeeded" and found.adversarial[0] == pair[0]
            assert found.words == 3 and found.words_changed == 1 and found.budget == 1
            assert all(not change.premise for change in found.changes)
            assert len(document(found.adversarial).words) == 3
