"""Every threat of the menu, by brute force: all texts that so many steps make of a short one.

Scores are eighths, so that ties are common; wherever a proof asks for new words, there are hostile
ones; a reader beside the copies says whatever hurts most, another thing each time.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from ranmask import (
    ClassifierError,
    FunctionClassifier,
    OptionError,
    ProtectedClassifier,
    SmoothedClassifier,
    SynonymSets,
)
from ranmask.certificates.threats import MOVING, THREATS
from ranmask.models.readers import FunctionReader

OWN = ("g1", "g2", "g3", "g4", "g5", "so", "bad")
LIKELY = (0.25, 0.2, 0.15, 0.15, 0.1, 0.1, 0.05)
HOSTILE = ("h1", "h2", "h3", "h4")
TABLE = {
    "g1": ["n1", "g2"],
    "g2": ["n1", "n2"],
    "so": ["bad", "n2"],
    "g4": ["so", "g5"],
    "bad": ["g3"],
}


def scores_of(seed, classes):
    """Words that mostly speak for class 0, hostile ones, and synonyms of both kinds."""
    rng = np.random.default_rng(seed)
    scores = {word: rng.integers(0, 9, classes) / 8 for word in (*OWN, "n1", "n2")}
    for word in ("g1", "g2", "g3", "g4", "g5"):
        scores[word] = np.array([8, *rng.integers(0, 3, classes - 1)]) / 8
    for number, word in enumerate(HOSTILE):
        scores[word] = np.eye(classes)[1 + number % (classes - 1)]
    return {word: row.tolist() for word, row in scores.items()}


class World:
    """A classifier of single words, and what it says of a text in the worst case."""

    def __init__(self, scores, reader=None, **options):
        self.scores = scores
        self.answer = next(iter(scores.values()))
        self.classes = len(self.answer)
        base = FunctionClassifier(lambda texts: [scores[text] for text in texts], hide="drop")
        settings = {"keep": 1, "ensemble": "score", "synonyms": TABLE, "recheck": 0, **options}
        if reader is None:
            self.smoothed = SmoothedClassifier(base, **settings)
        else:
            self.smoothed = ProtectedClassifier(
                base,
                reader=lambda texts: [list(self.answer) for _ in texts],
                reader_weights=(reader,),
                **settings,
            )
        self.reader = reader
        self.known = {}

    def labels(self, texts):
        """For each text, its label as the only winner, whatever the reader says; else -1."""
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        answers = np.eye(self.classes).tolist() if self.reader else [None]
        found = []
        for self.answer in answers:
            totals = [
                row
                for batch in (self.smoothed.scored([" ".join(text) for text in new]) if new else ())
                for row in batch.votes.totals.tolist()
            ]
            found.append([t.index(max(t)) if t.count(max(t)) == 1 else -1 for t in totals])
        for text, *labels in zip(new, *found, strict=True):
            self.known[text] = labels[0] if len(set(labels)) == 1 else -1
        return {self.known[text] for text in texts}


def after(threat, words, steps, vocabulary, table=TABLE):
    """All texts within so many steps."""
    if threat == "span":
        return {
            (*words[:start], *new, *words[start + size :])
            for size in range(min(steps, len(words)) + 1)
            for start in range(len(words) - size + 1)
            for new in itertools.product(vocabulary, repeat=size)
        }
    if threat == "synonyms":
        choices = itertools.product(*([word, *table.get(word, ())] for word in words))
        return {
            one for one in choices if sum(a != b for a, b in zip(one, words, strict=True)) <= steps
        }
    reached = {tuple(words)}
    for _ in range(steps):
        found = set(reached)
        for one in reached:
            for at in range(len(one) + 1):
                if threat in ("insertions", "edits"):
                    found |= {(*one[:at], new, *one[at:]) for new in vocabulary}
                if at < len(one) and threat in ("deletions", "edits"):
                    found.add((*one[:at], *one[at + 1 :]))
                if at < len(one) and threat in ("substitutions", "edits"):
                    found |= {(*one[:at], new, *one[at + 1 :]) for new in vocabulary}
        reached = found - {()}
    if threat == "substitutions":  # a position that was changed twice counts once
        assert all(len(one) == len(words) for one in reached)
    return reached


WORDS_ALONE = [threat for threat in THREATS if threat != "characters"]


@pytest.mark.parametrize("reader", [None, 0.5])
@pytest.mark.parametrize("family", [None, "distinct"])
@pytest.mark.parametrize(
    ("seed", "classes", "ensemble"), [(0, 2, "score"), (1, 3, "score"), (2, 3, "vote")]
)
def test_no_text_within_a_radius_has_another_label(seed, classes, ensemble, family, reader):
    world = World(scores_of(seed, classes), reader, family=family, ensemble=ensemble)
    rng = np.random.default_rng(seed)
    seen = dict.fromkeys(WORDS_ALONE, 0)
    vocabulary = ("so", "bad", *HOSTILE[: classes - 1])
    for _ in range(25):
        words = tuple(rng.choice(OWN, size=int(rng.integers(2, 8)), p=LIKELY).tolist())
        [result] = world.smoothed.certify([" ".join(words)], threats=WORDS_ALONE)
        assert list(result.radii) == WORDS_ALONE
        [alone] = world.smoothed.certify([" ".join(words)])
        assert replace(result, radii={}, assumes=alone.assumes) == alone
        assert result.radii["substitutions"] == result.radius
        for threat, radius in result.radii.items():
            if radius is None or (reader and radius == 0):
                continue  # of an unchanged text a reader that changes its mind is not asked
            steps = radius if threat in ("synonyms", "deletions") else min(radius, 2)
            reached = after(threat, words, steps, vocabulary)
            assert world.labels(sorted(reached)) == {result.label_id}, (threat, words, radius)
            seen[threat] += steps > 0
    assert all(seen.values()), seen


@pytest.mark.parametrize(
    ("text", "leads", "table", "radius"),
    [
        # One new word that both become counts for the label once, not twice.
        ("a b n", {"a": 8, "b": 8, "n": -6, "y": 6}, {"a": ["y"], "b": ["y"]}, 1),
        # A word for the rival is not gone where another word becomes it.
        ("r a g", {"r": -4, "a": 8, "g": 6, "z": -2}, {"r": ["z"], "a": ["r"]}, 1),
        # Each changed occurrence of a word may bring in another one.
        ("a a a g", {"a": 1, "g": 7, "y": -4, "z": -4}, {"a": ["y", "z"]}, 1),
        # A word that stands in the text brings in nothing, though it speaks for the label.
        ("a g g n", {"a": 8, "g": 8, "n": -8}, {"a": ["g"]}, 0),
    ],
)
def test_changes_that_meet_where_words_count_once(text, leads, table, radius):
    scores = {word: [max(lead, 0) / 8, max(-lead, 0) / 8] for word, lead in leads.items()}
    world = World(scores, threat="synonyms", synonyms=table, family="distinct")
    [result] = world.smoothed.certify([text])
    words = tuple(text.split())
    assert (result.radius, result.label_id) == (radius, 0)
    within = after("synonyms", words, radius, (), table)
    beyond = after("synonyms", words, radius + 1, (), table)
    assert world.labels(sorted(within)) == {0} != world.labels(sorted(beyond))


class TestTight:
    """One step more breaks it, for some vocabulary: what the page calls exact."""

    @pytest.mark.parametrize("reader", [None, 0.75])
    @pytest.mark.parametrize("family", [None, "distinct"])
    @pytest.mark.parametrize("threat", WORDS_ALONE)
    def test_words(self, threat, family, reader):
        broken = 0
        for seed in range(12):
            world = World(scores_of(seed, 2), reader, family=family, threat=threat)
            rng = np.random.default_rng(seed)
            for _ in range(10):
                size = int(rng.integers(2, 7))
                words = tuple(rng.choice(OWN, size=size, p=LIKELY).tolist())
                [result] = world.smoothed.certify([" ".join(words)])
                radius = result.radius
                assert result.threat == threat and not result.radii
                if not result.tight or radius is None or radius > 1 or result.label_id != 0:
                    continue
                if threat == "synonyms" and radius == len(words):
                    continue
                if reader and radius == 0 and world.labels([words]) == {-1}:
                    continue
                beyond = after(threat, words, radius + 1, ("h1", "h3"))
                if threat == "deletions" and len(words) == radius + 1:
                    continue  # nothing would be left
                assert world.labels(sorted(beyond)) != {0}, (words, result)
                broken += 1
                if threat != "insertions":
                    assert len(result.critical_words) == radius + 1
                else:
                    assert result.critical_words == ()
        assert broken > 5 or (threat, family) == ("synonyms", "distinct")  # never called exact

    def test_characters(self):
        """A blank in the middle of a word makes two hostile words of a good one."""
        scores = {"ab": [1.0, 0.0], "a": [0.0, 1.0], "b": [0.0, 1.0]}
        for words in range(1, 12):
            world = World(scores, threat="characters", synonyms=None)
            [result] = world.smoothed.certify([" ".join(["ab"] * words)])
            # n words lead by n, and an edit costs 3.
            assert result.radius == (words - 1) // 3 and result.tight
            broken = " ".join(["a b"] * (result.radius + 1) + ["ab"] * (words - result.radius - 1))
            assert world.labels([tuple(broken.split())]) != {0}


class TestCharacters:
    BLANKS = (" ", "\u00a0")

    def edits(self, text, alphabet):
        found = {text[:at] + new + text[at:] for at in range(len(text) + 1) for new in alphabet}
        found |= {text[:at] + text[at + 1 :] for at in range(len(text))}
        return found | {
            text[:at] + new + text[at + 1 :] for at in range(len(text)) for new in alphabet
        }

    def world(self, seed, classes, reader, family):
        """Every string over a and b up to 14 letters says something; most say it for a rival."""
        rng = np.random.default_rng(seed)
        hostile = np.eye(classes)[1:].tolist()

        class Scores(dict):
            def __missing__(self, word):
                row = hostile[int(rng.integers(classes - 1))]
                if rng.random() < 0.3:
                    row = (rng.integers(0, 9, classes) / 8).tolist()
                self[word] = row
                return row

        scores = Scores({"a": [1.0] + [0.0] * (classes - 1)})
        scores["aa"] = [1.0] + [1 / 8] * (classes - 1)
        if seed % 2:
            scores["a"], scores["b"] = scores["aa"], scores["a"]
        return World(scores, reader, threat="characters", family=family, synonyms=None)

    @pytest.mark.parametrize("reader", [None, 0.5])
    @pytest.mark.parametrize("family", [None, "distinct"])
    @pytest.mark.parametrize(("seed", "classes"), [(0, 2), (1, 3), (2, 3), (3, 2)])
    def test_all_edits(self, seed, classes, family, reader):
        world = self.world(seed, classes, reader, family)
        rng = np.random.default_rng(seed)
        alphabet = ("a", "b", *self.BLANKS)
        good = ["a", "aa", "b"] if family is None else ["a", "aa", "b", "ab", "ba", "aaa", "bb"]
        for word in good:
            if family is not None:
                world.scores[word] = [1.0] + [0.0] * (classes - 1)
        radii = []
        for size in (2, 4, 4, 5, 5, 7, 7, 8):
            words = rng.choice(good, size=size, replace=family is None or size > 7).tolist()
            text = "".join(word + str(rng.choice([" ", "\u00a0", "  "])) for word in words)
            text = text.rstrip() if seed % 2 else text
            [result] = world.smoothed.certify([text])
            radii.append(result.radius)
            if not result.radius or (reader and result.radius == 0):
                continue
            reached = {text}
            for _ in range(min(result.radius, 2 if len(text) < 16 else 1)):
                reached |= set().union(*(self.edits(one, alphabet) for one in reached))
            split = {tuple(one.split()) for one in reached}
            assert () not in split  # to delete everything is never proved
            assert world.labels(sorted(split)) == {result.label_id}, (text, result.radius)
        assert any(radii)

    def test_what_a_blank_is(self):
        """`str.split` decides: some characters that look like nothing are letters to it."""
        scores = {"ab": [1.0, 0.0], "a\u200bb": [1.0, 0.0], "x": [0.0, 1.0]}
        world = World(scores, threat="characters", synonyms=None)
        for (
            blank
        ) in " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000":
            [result] = world.smoothed.certify([blank.join(["ab"] * 5)])
            assert (result.words, result.radius) == (5, 1), repr(blank)
        [result] = world.smoothed.certify(["a\u200bb"])
        assert result.words == 1

    def test_half_a_surrogate_pair_is_refused_and_an_empty_text(self):
        from ranmask.errors import TextError

        world = World({"ab": [1.0, 0.0]}, threat="characters", synonyms=None)
        [result] = world.smoothed.certify(["ab ab ab ab"])
        assert result.radius == 1
        for attacked in ("ab ab a\ud800b ab", "", " "):
            with pytest.raises(TextError):
                world.smoothed.predict([attacked])


class TestPositions:
    """Copies that tell positions apart: spans, and synonyms in their places."""

    @staticmethod
    def adversary(seed):
        """Scores that depend on words and places; x and y are the worst, wherever they are."""
        known = {}

        def says(texts):
            rows = []
            for text in texts:
                if set(text.split()) & {"x", "y"}:
                    rows.append([0.0, 1.0, 0.0] if "x" in text.split() else [0.0, 0.0, 1.0])
                    continue
                if text not in known:
                    rng = np.random.default_rng([seed, len(known)])
                    known[text] = [8 - int(rng.integers(3)), *rng.integers(0, 6, 2).tolist()]
                rows.append([value / 8 for value in known[text]])
            return rows

        return says

    @pytest.mark.parametrize(
        ("keep", "weights"),
        [(keep, weights) for keep in (1, 2, 3) for weights in (None, (0.75,))]
        + [(1, (0.5, 0.25, 0.25)), (1, (0, 0.5))],
    )
    def test_spans(self, keep, weights):
        seen = 0
        for seed in range(6):
            settings = {"keep": keep, "ensemble": "score", "threat": "span", "recheck": 0}
            settings["masks"] = 1000 if seed % 2 or keep == 1 else 12
            if weights is None:
                smoothed = SmoothedClassifier(self.adversary(seed), **settings)
            else:
                reader = FunctionReader(self.adversary(50 + seed), repeatable=True)
                smoothed = ProtectedClassifier(
                    self.adversary(seed), reader=reader, reader_weights=weights, **settings
                )
            for size in (6, 8, 9):
                words = [f"w{i}" for i in range(size)]
                [result] = smoothed.certify([" ".join(words)])
                if result.radius is None or result.label_id != 0:
                    continue

                for length in range(1, result.radius + 1):
                    attacked = [
                        " ".join([*words[:start], *new, *words[start + length :]])
                        for start in range(size - length + 1)
                        for new in itertools.product(["x", "y"], repeat=length)
                    ]
                    seen += 1
                    assert {p.label_id for p in smoothed.predict(attacked)} == {0}
                run = result.critical_words
                assert run == tuple(range(run[0], run[0] + result.radius + 1))
                [batch] = smoothed.scored(
                    [
                        " ".join([*words[: run[0]], *[new] * len(run), *words[run[-1] + 1 :]])
                        for new in "xy"
                    ]
                )
                assert any(row[0] <= max(row[1:]) for row in batch.votes.totals.tolist())
        assert seen

    @pytest.mark.parametrize("reader", [None, 0.5])
    @pytest.mark.parametrize("ensemble", ["vote", "score"])
    def test_synonyms_in_their_places(self, ensemble, reader):
        table = SynonymSets(
            {
                "w0": ["v0", "x"],
                "w1": ["y", "x"],
                "w2": ["x"],
                "w3": ["v3"],
                "w4": ["w0"],
                "w5": ["x"],
            }
        )
        seen = set()
        for seed in range(12):
            answer = [1.0, 0.0, 0.0]
            settings = {
                "keep": 1,
                "ensemble": ensemble,
                "threat": "synonyms",
                "synonyms": table,
                "recheck": 0,
            }
            base = self.adversary(seed)
            if reader is None:
                smoothed = SmoothedClassifier(base, **settings)
            else:
                smoothed = ProtectedClassifier(
                    base,
                    reader=lambda texts, answer=answer: [list(answer) for _ in texts],
                    reader_weights=(reader,),
                    **settings,
                )
            words = tuple(f"w{i}" for i in range(6))
            [result] = smoothed.certify([" ".join(words)])
            seen.add(result.radius)
            if result.radius is None:
                continue
            lists = [[word, *table.replacements(word)[1:]] for word in words]
            for changed in itertools.product(*lists):
                steps = sum(a != b for a, b in zip(changed, words, strict=True))
                if 0 < steps <= result.radius:
                    for answer[:] in np.eye(3).tolist():
                        [found] = smoothed.predict([" ".join(changed)])
                        assert found.label_id == result.label_id
            if result.radius < len(words) and not reader:
                worst = [
                    changed
                    for changed in itertools.product(*lists)
                    if sum(a != b for a, b in zip(changed, words, strict=True)) == result.radius + 1
                ]
                totals = [
                    row
                    for batch in smoothed.scored([" ".join(one) for one in worst])
                    for row in batch.votes.totals.tolist()
                ]
                label = result.label_id
                assert any(row[label] <= max(row[:label] + row[label + 1 :]) for row in totals), (
                    "exact: some choice of synonyms breaks it"
                )
        assert seen - {None, 0, 6}

    @pytest.mark.parametrize(
        ("hide", "family"), [("drop", None), ("mask", None), ("drop", "distinct")]
    )
    def test_synonyms_of_a_hypothesis_are_read_with_its_premise(self, hide, family):
        """What "fine" says depends on the premise: it must not be remembered from another."""

        def says(texts):
            hostile = [("fine" in shown) and premise == "no" for premise, shown in texts]
            return [[0.0, 1.0] if one else [1.0, 0.0] for one in hostile]

        base = FunctionClassifier(says, hide=hide)
        settings = {"keep": 1, "threat": "synonyms", "synonyms": {"good": ["fine", "great"]}}
        smoothed = SmoothedClassifier(base, family=family, **settings)
        pairs = [(premise, "so good so good") for premise in ("yes", "no", "yes")]
        radii = [one.radius for one in smoothed.certify(pairs)]
        assert radii == ([4, 0, 4] if family == "distinct" else [4, 1, 4])
        [batch] = smoothed.scored([("no", "so fine so fine")])
        assert batch.votes.totals[0].tolist() == ([1, 1] if family == "distinct" else [2, 2])

    def test_a_synonym_that_fails_blames_no_other_text(self):
        """Whose word it is a synonym of is not known: no row of a run may be lost for another."""

        def says(texts):
            if any("bug" in text for text in texts):
                raise ValueError("cannot")
            return [[1.0, 0.0] for _ in texts]

        for hide in ("drop", "mask"):
            base = FunctionClassifier(says, hide=hide)
            smoothed = SmoothedClassifier(
                base, keep=1, threat="synonyms", synonyms={"good": ["fine"], "film": ["bug"]}
            )
            with pytest.raises(ClassifierError, match="bug") as failed:
                smoothed.certify(["good good", "so good", "so film"])
            assert failed.value.index is None


class TestWhatIsClaimed:
    def test_all_words_at_once(self):
        scores = {"good": [1.0, 0.0], "fine": [0.75, 0.25], "bad": [0.0, 1.0]}
        base = FunctionClassifier(lambda texts: [scores[text] for text in texts], hide="drop")
        smoothed = SmoothedClassifier(
            base, keep=1, ensemble="score", threat="synonyms", synonyms={"good": ["fine"]}
        )
        [result] = smoothed.certify(["good good bad"])
        # 1 + 1 - 1 = 1 falls by 1/2 for each synonym: a tie if both are replaced.
        assert (result.radius, result.critical_words) == (1, (0, 1))
        [result] = smoothed.certify(["good good good bad"])
        assert (result.radius, result.words, result.critical_words) == (4, 4, ())
        assert result.certified(4) and "table" in result.assumes[0]

    def test_a_text_without_synonyms_is_the_text_itself(self):
        """No word can be replaced, so the reader's vote is as good as it is for the text."""
        base = FunctionClassifier(lambda texts: [[1.0, 0.0] for _ in texts], hide="drop")
        reader = FunctionReader(lambda texts: [[0.0, 1.0] for _ in texts], repeatable=True)
        settings = {"keep": 1, "threat": "synonyms", "synonyms": {"good": ["bad"]}}
        protected = ProtectedClassifier(base, reader=reader, reader_weights=(9,), **settings)
        none, some = protected.certify(["so far", "so good"])
        assert (none.label, none.radius) == ("1", 2) and (some.label, some.radius) == ("1", 0)

    def test_a_longer_text_than_is_read_whole(self):
        """With family="auto" a text of more than `masks` words is sampled: no radius goes there."""
        base = FunctionClassifier(lambda texts: [[1.0, 0.0] for _ in texts], hide="drop")
        smoothed = SmoothedClassifier(base, keep=1, masks=10)
        [result] = smoothed.certify(["w " * 8], threats=["insertions", "deletions", "edits"])
        assert result.radii == {"substitutions": 3, "insertions": 2, "deletions": 7, "edits": 2}
        with pytest.raises(OptionError, match="11 words are more than masks=10"):
            smoothed.certify(["w " * 11], threats=["insertions"])
        whole = smoothed.with_options(family="all")
        [result] = whole.certify(["w " * 8], threats=["insertions"])
        assert result.radii["insertions"] == 7
        assert "a text that grows beyond 10 words is refused, not classified" in result.assumes

    def test_deleting_everything_is_never_proved(self):
        base = FunctionClassifier(lambda texts: [[1.0, 0.0] for _ in texts], hide="drop")
        for family in (None, "distinct"):
            smoothed = SmoothedClassifier(base, keep=1, threat="deletions", family=family)
            for words in range(1, 5):
                [result] = smoothed.certify([" ".join(f"w{i}" for i in range(words))])
                assert result.radius == words - 1

    def test_order_is_free_under_edits_alone(self):
        """An unchanged text may be reordered under edits, which a reader may notice."""
        base = FunctionClassifier(lambda texts: [[1.0, 0.0] for _ in texts], hide="drop")
        reader = FunctionReader(lambda texts: [[0.0, 1.0] for _ in texts], repeatable=True)
        for family in (None, "distinct"):
            protected = ProtectedClassifier(
                base, reader=reader, reader_weights=(4,), keep=1, family=family, synonyms=TABLE
            )
            [result] = protected.certify(["one two three"], threats=THREATS)
            assert result.radii.pop("edits") is None
            assert result.radii.pop("synonyms") == 3  # none of them has any
            assert set(result.radii.values()) == {0}


class TestWhatIsRefused:
    @pytest.mark.parametrize("threat", MOVING)
    def test_a_base_classifier_that_reads_positions(self, threat):
        def says(texts):
            return [[1.0, 0.0] for _ in texts]

        with pytest.raises(OptionError, match=f"threat='{threat}' needs a base classifier that is"):
            SmoothedClassifier(says, keep=1, threat=threat)
        smoothed = SmoothedClassifier(says, keep=1)
        with pytest.raises(OptionError, match="use a word table"):
            smoothed.certify(["one two"], threats=["span", threat])
        assert smoothed.certify(["one two"], threats=["span"])[0].radii["span"] == 0

    @pytest.mark.parametrize("threat", [*MOVING, "synonyms"])
    def test_copies_of_several_words_and_segments(self, threat):
        def says(texts):
            return [[1.0, 0.0] for _ in texts]

        base = FunctionClassifier(says, hide="drop")
        settings = {"synonyms": TABLE}
        with pytest.raises(OptionError, match=f"threat='{threat}' needs keep=1, not 2.*word table"):
            SmoothedClassifier(base, keep=2, threats=[threat], **settings)
        reader = FunctionReader(says, repeatable=True)
        with pytest.raises(OptionError, match=f"weighs segments, which needs threat=.*{threat}"):
            ProtectedClassifier(
                base, reader=reader, reader_weights=(1, 1), keep=1, threats=[threat], **settings
            )
        with pytest.raises(OptionError, match="needs certificate='exact'"):
            SmoothedClassifier(base, keep=1, threat=threat, certificate="ablation", **settings)

    def test_no_table(self):
        smoothed = SmoothedClassifier(lambda texts: [[1.0, 0.0] for _ in texts], keep=1)
        with pytest.raises(OptionError, match="needs a table: give synonyms"):
            smoothed.certify(["one"], threats=["synonyms"])
        with pytest.raises(OptionError, match="synonyms must be SynonymSets or a mapping"):
            smoothed.with_options(synonyms=["one"])

    def test_what_is_no_threat(self):
        smoothed = SmoothedClassifier(lambda texts: [[1.0, 0.0] for _ in texts], keep=1)
        with pytest.raises(OptionError, match="threats must be a list of names, not 'span'"):
            smoothed.certify(["one"], threats="span")
        with pytest.raises(OptionError, match=r"threats must be one of substitutions, .*'magic'"):
            smoothed.certify(["one"], threats=["magic"])
        [result] = smoothed.certify(["one two three"], threats=["span"])
        with pytest.raises(OptionError, match="says nothing of threat='edits'"):
            result.certified(1, "edits")
        assert result.certified(1, "span") and not result.certified(2, "span")
        [result] = smoothed.certify(["one two three"], threats=["substitutions"])
        assert result.radii == {"substitutions": 1}
        assert smoothed.certify(["one two three"], threats=[])[0].radii == {}
        for wrong in (5, [["span"]]):
            with pytest.raises(OptionError, match="threats must be"):
                smoothed.certify(["one"], threats=wrong)
