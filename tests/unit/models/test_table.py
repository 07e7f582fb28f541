"""Word tables: features that never change, integers that are exact, files that come back."""

import hashlib
import json
import math
import pickle
import subprocess
import sys
import zlib
from fractions import Fraction

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from ranmask import SmoothedClassifier, WordTable
from ranmask.certificates.families import all_sets
from ranmask.certificates.votes import SCALE
from ranmask.errors import ClassifierError, ModelError, OptionError, OutputError, TextError
from ranmask.models import word_table
from ranmask.models.base import MaskedCopies
from ranmask.models.normalising import Normaliser, letters
from ranmask.models.word_features import features
from ranmask.models.word_table import ONE, sigmoid_curve, spelt
from ranmask.smoothing.store import load_classifier
from ranmask.words import document


def word_features(word):
    """Hashes of one word's features, and the weight of each n-gram among them."""
    hashes, weights, _ = features([word])
    return hashes.tolist(), int(weights[-1])


LABELS = ("north", "south", "east")
WORDS = [
    "Hello!", "hello", "HELLO", "a", "I", "--", "...", "!", "“quoted”", "naïve", "İstanbul", "ß",
    "日本語", "🙂", "👩‍👩‍👧", "e\u0301", "x" * 500, "don't", "#39;", "42", "ﬁn", "\u200b", "<b>",
]  # fmt: skip
TEXTS = ["Hello! a -- hello", "日本語 🙂 don't", "HELLO", " ".join(WORDS)]


def random_table(seed=0, buckets=997, kind=np.int8, labels=LABELS, **options):
    rng = np.random.default_rng(seed)
    limit = np.iinfo(kind).max
    entries = rng.integers(-limit, limit + 1, size=(buckets, len(labels))).astype(kind)
    bias = rng.integers(-2000, 2000, size=len(labels))
    return WordTable(entries, bias, labels=labels, **{"shift": 6, **options})


def smoothed(table, **options):
    return SmoothedClassifier(table, **{**table.smoothing, **options})


def scores_of(table, text, kept):
    [rows] = table.score([MaskedCopies(document(text), len(text.split()), kept)])
    return rows


class TestFeatures:
    @pytest.mark.parametrize(
        ("word", "hashes", "weight"),
        [
            ("a", [1256084810, 2537716606, 4088178915, 1753164613], 256),
            ("--", [1565705514, 2084285873, 4074876059, 2953669266, 693625355, 231869732], 148),
            (
                "İ",
                [1255048620, 2100890349, 4091743175, 2409226685, 231283776, 2788992246],
                148,
            ),
            (
                "Hello!",
                [
                    1648936039, 3414524928, 557505672, 1157896304, 3804453109, 1004105967,
                    2902530778, 2587895931, 3326523354, 1530070837, 1065465309, 1976092918,
                    4039556995, 1508336736, 3946765818,
                ],
                74,
            ),
        ],
    )  # fmt: skip
    def test_pinned(self, word, hashes, weight):
        """A table of today must mean the same in ten years."""
        assert word_features(word) == (hashes, weight)

    @pytest.mark.parametrize("word", WORDS)
    def test_by_the_rule(self, word):
        """Written once more, as the docstring tells it."""
        stripped = word.strip("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~“”‘’…–—") or word  # noqa: RUF001
        grams = f"<{stripped.lower()[:64]}>"
        named = [f"lower{stripped.lower()}", f"cased{stripped}", f"raw{word}"]
        named += [f"gram{grams[i : i + n]}" for n in (3, 4, 5) for i in range(len(grams) - n + 1)]
        hashes, weight = word_features(word)
        assert hashes == [zlib.crc32(name.encode("utf-8")) for name in named]
        assert weight == round(256 / math.sqrt(len(named) - 3))

    def test_a_word_always_has_n_grams(self):
        assert all(len(word_features(word)[0]) > 3 for word in [*WORDS, "'", "ab"])

    def test_forms_share_what_they_have_in_common(self):
        plain, loud, marked = (word_features(w)[0] for w in ("hello", "HELLO", "hello!"))
        assert plain[0] == loud[0] == marked[0] and plain[3:] == loud[3:] == marked[3:]
        assert plain[1] == marked[1] != loud[1]
        assert len({plain[2], loud[2], marked[2]}) == 3

    def test_a_long_word_is_cut_for_n_grams_only(self):
        one, other = word_features("x" * 100_000 + "a"), word_features("x" * 100_000 + "b")
        assert one[0][3:] == other[0][3:] and len(one[0]) == 3 + 64 + 63 + 62
        assert not set(one[0][:3]) & set(other[0][:3])

    def test_of_many_words(self):
        hashes, weights, starts = features(["a", "--"])
        assert hashes.tolist() == word_features("a")[0] + word_features("--")[0]
        assert weights.tolist() == [256] * 4 + [256] * 3 + [148] * 3
        assert starts.tolist() == [0, 4]


class TestCurve:
    def test_pinned(self):
        content = sigmoid_curve().astype("<i4").tobytes()
        assert hashlib.sha256(content).hexdigest() == (
            "0de3c70927d1744a6a659d1b4ad1a3187ae3ba3477170ef4a10326e589afd96f"
        )

    def test_ends_and_middle_are_exact(self):
        curve = sigmoid_curve()
        assert (curve[0], curve[len(curve) // 2], curve[-1]) == (0, ONE // 2, ONE)
        assert (curve + curve[::-1] == ONE).all() and (np.diff(curve) >= 0).all()

    def test_is_a_sigmoid(self):
        steps = np.arange(-16 * 128, 16 * 128 + 1) / 128
        assert np.abs(sigmoid_curve() / ONE - 1 / (1 + np.exp(-steps))).max() <= 0.5 / ONE


class TestScores:
    @pytest.mark.parametrize("kind", [np.int8, np.int16])
    @pytest.mark.parametrize("shift", [0, 1, 5, 9])
    def test_against_python_integers(self, kind, shift):
        table = random_table(3, kind=kind, shift=shift)
        arrays = table._arrays()
        curve = sigmoid_curve().tolist()
        for word in WORDS:
            hashes, gram = word_features(word)
            expected = []
            for c in range(3):
                total = int(arrays["bias"][c])
                for place, one in enumerate(hashes):
                    total += (256 if place < 3 else gram) * int(arrays["entries"][one % 997, c])
                step = math.floor(Fraction(total, 2**shift) + Fraction(1, 2)) + 2048
                expected.append(curve[min(max(step, 0), 4096)] / 2**20)
            assert table.word_scores(word) == tuple(expected)

    def test_smoothing_rounds_nothing(self):
        rows = scores_of(random_table(), TEXTS[-1], all_sets(len(WORDS), 1))
        assert SCALE % ONE == 0
        assert (np.rint(rows * SCALE) == rows * SCALE).all()
        assert rows.min() >= 0 and rows.max() <= 1

    def test_extreme_words_reach_0_and_1(self):
        entries = np.full((5, 2), [127, -127], dtype=np.int8)
        table = WordTable(entries, np.zeros(2, dtype=np.int64), labels=["a", "b"], shift=3)
        assert table.word_scores("any") == (1.0, 0.0)

    def test_the_largest_table_does_not_overflow(self):
        entries = np.full((3, 2), [32767, -32768], dtype=np.int16)
        bias = np.array([2**40 - 1, 1 - 2**40])
        table = WordTable(entries, bias, labels=["a", "b"], shift=0)
        assert table.word_scores("x" * 1000) == (1.0, 0.0)

    def test_a_copy_of_several_words_has_their_mean(self):
        table = random_table(1)
        for size in (2, 3, 7):
            kept = all_sets(8, size)
            words = WORDS[:8]
            rows = scores_of(table, " ".join(words), kept)
            assert (np.rint(rows * SCALE) == rows * SCALE).all()
            for row, positions in zip(rows.tolist(), kept.tolist(), strict=True):
                each = [table.word_scores(words[position]) for position in positions]
                for c in range(3):
                    mean = sum(Fraction(one[c]) for one in each) / size
                    assert row[c] == math.floor(mean * ONE + Fraction(1, 2)) / ONE

    def test_position_and_company_do_not_matter(self):
        rows = scores_of(random_table(2), TEXTS[-1], all_sets(len(WORDS), 1))
        back = scores_of(random_table(2), " ".join(WORDS[::-1]), all_sets(len(WORDS), 1))
        assert (rows == back[::-1]).all()
        alone = [random_table(2).word_scores(word) for word in WORDS]
        assert [tuple(row) for row in rows.tolist()] == alone

    def test_unread_words_are_not_shown(self):
        table = random_table()
        [rows] = table.score([MaskedCopies(document("a b c"), 2, all_sets(2, 1))])
        assert rows.tolist() == [list(table.word_scores(word)) for word in "ab"]

    def test_pairs_are_refused(self):
        with pytest.raises(ClassifierError, match="single texts only"):
            smoothed(random_table()).certify([("a premise", "a hypothesis")])

    @pytest.mark.parametrize("word", ["", " ", "two words", " led", "trailed\n", "half\ud800"])
    def test_word_scores_wants_a_word(self, word):
        with pytest.raises(TextError):
            random_table().word_scores(word)

    @pytest.mark.parametrize("option", [{"hide": "drop"}, {"mask_token": "[MASK]"}], ids=str)
    def test_nothing_is_hidden(self, option):
        with pytest.raises(OptionError, match="means nothing for a word table"):
            smoothed(random_table(), **option)


class TestCache:
    def test_is_bounded_and_changes_nothing(self, monkeypatch):
        texts = [f"w{i} w{i + 1} w{i % 7} {'long' * (i % 40)}z" for i in range(300)]
        expected = [smoothed(random_table()).certify([text])[0] for text in texts]
        monkeypatch.setattr(word_table, "_MOST_WORDS_KEPT", 20)
        monkeypatch.setattr(word_table, "_WORDS_AT_ONCE", 3)
        table = random_table()
        for text, result in zip(texts, expected, strict=True):
            assert smoothed(table).certify([text]) == [result]
            assert len(table._places) <= 20
        assert smoothed(table).certify(texts) == expected  # more words at once than are kept
        assert smoothed(table).certify(texts[::-1]) == expected[::-1]

    def test_long_words_do_not_pile_up(self, monkeypatch):
        monkeypatch.setattr(word_table, "_MOST_CHARACTERS_KEPT", 1000)
        table = random_table()
        for i in range(50):
            table.word_scores("x" * 400 + str(i))
        assert sum(map(len, table._places)) <= 2000

    def test_known_words_are_not_computed_again(self, monkeypatch):
        table = random_table()
        before = smoothed(table).certify(TEXTS)
        monkeypatch.setattr(word_table, "features", None)
        assert smoothed(table).certify(TEXTS) == before


class TestTablesThatAreRefused:
    @pytest.mark.parametrize(
        "changes",
        [
            {"entries": np.zeros((4, 3), dtype=np.int32)},
            {"entries": np.zeros((4, 3), dtype=np.float32)},
            {"entries": np.zeros((0, 3), dtype=np.int8)},
            {"entries": np.zeros((4, 2), dtype=np.int8)},
            {"entries": np.zeros(12, dtype=np.int8)},
            {"bias": np.zeros(2, dtype=np.int64)},
            {"bias": np.zeros(3, dtype=np.int32)},
            {"bias": np.array([0, 0, 2**60])},
            {"bias": np.array([0, 0, -(2**63)])},
            {"curve": np.array([0, 1, ONE + 1], dtype=np.int32)},
            {"curve": np.array([-1, 1, 2], dtype=np.int32)},
            {"curve": np.array([0, 2, 1], dtype=np.int32)},
            {"curve": np.array([0, 1], dtype=np.int32)},
            {"curve": np.zeros(0, dtype=np.int32)},
            {"curve": np.array([0.0, 0.5, 1.0])},
            {"labels": ["a", "b"]},
            {"labels": ["a", "b", "b"]},
            {"shift": -1},
            {"shift": 33},
            {"shift": 1.5},
            {"shift": True},
            {"shift": None},
        ],
        ids=str,
    )
    def test_wrong_parts(self, changes):
        parts = {
            "entries": np.zeros((4, 3), dtype=np.int8),
            "bias": np.zeros(3, dtype=np.int64),
            "labels": LABELS,
            "shift": 1,
        }
        WordTable(**parts)
        with pytest.raises(ModelError, match="word table"):
            WordTable(**{**parts, **changes})

    def test_a_single_class(self):
        entries, bias = np.zeros((4, 1), dtype=np.int8), np.zeros(1, dtype=np.int64)
        with pytest.raises(ModelError, match="two or more classes"):
            WordTable(entries, bias, labels=["a"], shift=1)


class TestFiles:
    @pytest.fixture
    def folder(self, tmp_path):
        random_table().save(tmp_path / "table")
        return tmp_path / "table"

    @pytest.mark.parametrize("kind", [np.int8, np.int16])
    def test_a_saved_table_comes_back_the_same(self, tmp_path, kind):
        table = random_table(kind=kind, shift=4)
        table.save(tmp_path)
        loaded = WordTable.load(tmp_path)
        assert (loaded.labels, loaded.digest) == (table.labels, table.digest)
        assert [loaded.word_scores(word) for word in WORDS] == [
            table.word_scores(word) for word in WORDS
        ]

    def test_the_same_table_is_the_same_file(self, tmp_path):
        for name in ("one", "other"):
            random_table().save(tmp_path / name)
        for file in ("words.safetensors", "ranmask.json"):
            assert (tmp_path / "one" / file).read_bytes() == (
                tmp_path / "other" / file
            ).read_bytes()

    def test_a_loaded_table_is_smoothed_as_it_is_meant_to_be(self, folder):
        loaded = SmoothedClassifier.from_pretrained(folder)
        assert loaded.options.to_dict().items() >= dict(WordTable.smoothing).items()
        assert loaded.labels == LABELS
        assert loaded.certify(TEXTS) == smoothed(random_table()).certify(TEXTS)
        assert load_classifier(str(folder)).certify(TEXTS) == loaded.certify(TEXTS)

    def test_more_words_than_any_other_family_takes(self, folder):
        [result] = SmoothedClassifier.from_pretrained(folder).certify(["a bc " * 30_000])
        assert (result.family, result.masks, result.words_read) == ("all", 60_000, 60_000)

    def test_arguments_override_what_was_saved(self, folder):
        loaded = load_classifier(str(folder), keep=2, ensemble="vote", threat=None)
        assert (loaded.options.keep, loaded.options.ensemble) == (2, "vote")
        [result] = load_classifier(str(folder), threat="edits").certify(["a b c"])
        assert result.threat == "edits"

    def test_save_pretrained(self, tmp_path):
        saved = smoothed(random_table(), threat="edits", labels=["x", "y", "z"], masks=77)
        saved.save_pretrained(str(tmp_path / "s"))
        loaded = SmoothedClassifier.from_pretrained(str(tmp_path / "s"))
        assert (loaded.options, loaded.labels) == (saved.options, ("x", "y", "z"))
        assert loaded.certify(TEXTS) == saved.certify(TEXTS)
        record = json.loads((tmp_path / "s" / "ranmask.json").read_text())
        assert (record["kind"], record["version"]) == ("words", 1)
        assert saved.base.labels == LABELS  # renamed in the file, not under our feet

    def test_description_names_the_content(self, folder):
        table = random_table()
        assert table.description() == {"kind": "words", "sha256": WordTable.load(folder).digest}
        arrays = table._arrays()
        others = [
            table.renamed(["x", "y", "z"]),
            random_table(shift=7),
            random_table(1),
            WordTable(arrays["entries"], arrays["bias"] + 1, labels=LABELS, shift=6),
            WordTable(arrays["entries"].astype(np.int16), arrays["bias"], labels=LABELS, shift=6),
            WordTable(**{**arrays, "curve": np.array([0, 1, 2], "i4")}, labels=LABELS, shift=6),
        ]
        assert len({table.digest, *(other.digest for other in others)}) == 7

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("device", "cuda"),
            ("dtype", "float32"),
            ("hide", "mask"),
            ("mask_token", "[MASK]"),
            ("revision", "main"),
        ],
    )
    def test_options_of_encoders_are_refused(self, folder, name, value):
        with pytest.raises(OptionError, match=f"{name}='.*' means nothing .* word table"):
            load_classifier(str(folder), **{name: value})

    def test_needs_no_torch(self, folder):
        code = (
            "import sys\nfrom ranmask import SmoothedClassifier\n"
            f"smoothed = SmoothedClassifier.from_pretrained({str(folder)!r}, threat='edits')\n"
            "assert smoothed.certify(['a b c'])[0].guarantee\n"
            f"smoothed.save_pretrained({str(folder) + '2'!r})\n"
            "assert not {'torch', 'transformers', 'huggingface_hub'} & set(sys.modules)\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_a_folder_that_cannot_be_written(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(OutputError, match="cannot write"):
            random_table().save(tmp_path / "file")


def _flipped(content, place, bit):
    return content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :]


class TestDamagedFiles:
    @pytest.fixture
    def folder(self, tmp_path):
        random_table().save(tmp_path)
        return tmp_path

    def refused(self, folder, match):
        with pytest.raises(ModelError, match=match):
            SmoothedClassifier.from_pretrained(str(folder))

    def rewrite(self, folder, about=None, **changes):
        path = folder / "words.safetensors"
        kept = {
            name: one for name, one in {**load_file(path), **changes}.items() if one is not None
        }
        saved = {"version": 2, "labels": LABELS, "shift": 6, "sha256": random_table().digest}
        described = saved if about is None else about
        metadata = {"ranmask": json.dumps(described)} if described else None
        save_file(kept, path, metadata)

    def test_missing(self, folder):
        (folder / "words.safetensors").unlink()
        self.refused(folder, "not a word table, or is damaged")

    @pytest.mark.parametrize("length", [0, 1, 7, 8, 50, 200, 1000, -1])
    def test_cut(self, folder, length):
        path = folder / "words.safetensors"
        path.write_bytes(path.read_bytes()[:length])
        self.refused(folder, "damaged")

    def test_junk(self, folder):
        (folder / "words.safetensors").write_bytes(b"junk" * 100)
        self.refused(folder, "damaged")

    @pytest.mark.parametrize("bit", [0x01, 0x20, 0x80])
    def test_any_byte(self, folder, bit):
        """Refused, or the same table all the same (a blank of the header is another blank)."""
        path = folder / "words.safetensors"
        content = path.read_bytes()
        wanted = random_table().digest
        read = 0
        for place in [*range(600), *range(600, len(content), 97)]:
            path.write_bytes(_flipped(content, place, bit))
            try:
                assert WordTable.load(folder).digest == wanted
                read += 1
            except ModelError:
                pass
        assert read < 20

    @pytest.mark.parametrize("name", ["entries", "bias", "curve"])
    def test_a_bit_of_each_part(self, folder, name):
        """Arrays of the right shape and type, with one number off by one."""
        changed = load_file(folder / "words.safetensors")[name].copy()
        changed.flat[len(changed) // 3] ^= 1
        self.rewrite(folder, **{name: changed})
        self.refused(folder, "is damaged: it is not the table that was saved")

    @pytest.mark.parametrize("more", [{}, {"sha256": None}, {"sha256": "a" * 64}], ids=str)
    def test_a_digest_is_needed(self, folder, more):
        self.rewrite(folder, {"version": 2, "labels": LABELS, "shift": 6, **more})
        self.refused(folder, "is damaged: it is not the table that was saved")

    @pytest.mark.parametrize(
        "about",
        [
            {},
            {"version": 3, "labels": LABELS, "shift": 6},
            {"version": 1, "labels": LABELS, "shift": 6},
            {"labels": LABELS, "shift": 6},
            {"version": 2, "shift": 6},
            {"version": 2, "labels": LABELS},
            {"version": 2, "labels": "abc", "shift": 6},
            {"version": 2, "labels": [1, 2, 3], "shift": 6},
            {"version": 2, "labels": {"a": 1, "b": 2, "c": 3}, "shift": 6},
            {"version": 2, "labels": LABELS, "shift": "6"},
            {"version": 2, "labels": LABELS[:2], "shift": 6},
            [1, 2],
            "text",
        ],
        ids=str,
    )
    def test_descriptions(self, folder, about):
        self.rewrite(folder, about)
        self.refused(folder, r"words\.safetensors")

    @pytest.mark.parametrize("name", ["entries", "bias", "curve"])
    def test_parts(self, folder, name):
        self.rewrite(folder, **{name: np.zeros((2, 2, 2), dtype=np.int64)})
        self.refused(folder, name)
        self.rewrite(folder, **{name: None})
        self.refused(folder, name)

    def test_the_control(self, folder):
        self.rewrite(folder)
        assert SmoothedClassifier.from_pretrained(str(folder)).labels == LABELS

    @pytest.mark.parametrize("kind", ["forest", 3, None, ["words"]])
    def test_a_kind_that_is_unknown(self, folder, kind):
        record = json.loads((folder / "ranmask.json").read_text())
        (folder / "ranmask.json").write_text(json.dumps({**record, "kind": kind}))
        self.refused(folder, "this ranmask knows encoder, words, blend")


class TestVocabulary:
    """Tables that know their words, and say nothing of others."""

    def closed(self, words=("goal", "bank", "naive"), **changes):
        own = random_table(buckets=len(words))
        made = {
            "entries": own._entries,
            "bias": np.zeros(3, dtype=np.int64),
            "labels": LABELS,
            "shift": 6,
            "normaliser": Normaliser("letters"),
            "vocabulary": spelt(words),
        }
        return WordTable(**{**made, **changes})

    def test_other_words_say_the_same_of_every_class(self):
        table = self.closed()
        for word in ("goals", "goa", "--", "日本語", "goalbank"):
            assert table.word_scores(word) == (0.5,) * 3
        assert len(set(table.word_scores("bank"))) > 1

    def test_and_vote_for_none(self):
        smoothed = SmoothedClassifier(self.closed(), keep=1, ensemble="score")
        [result] = smoothed.certify(["goal other bank another goal"])
        assert sum(result.votes) == 3 and result.masks == 5
        [shown] = smoothed.certify_showing(["goal other"], copies=2)
        assert [copy["label_id"] is None for copy in shown.copies] == [False, True]
        [result] = smoothed.certify(["nothing of it is known"])
        assert result.votes == (0, 0, 0) and result.label_id == 0
        # Where votes are counted, each copy has one: the first of those that are best.
        [result] = smoothed.with_options(ensemble="vote").certify(["nothing of it is known"])
        assert result.votes == (5, 0, 0)

    def test_only_letters_and_digits_are_read(self):
        table = self.closed()
        for word in ("GOAL", "g.o-a'l!", "go\u200bal", "«Goal»"):
            assert table.word_scores(word) == table.word_scores("goal")
        assert table.word_scores("naïve") == table.word_scores("naive")

    def test_every_character_is_read_as_one_or_none(self):
        assert [letters(one) for one in ("ﬁ", "½", "ß", "İ", "\U0001d400", "\u0301")] == [
            *("ﬁ", "½", "ß", "i", "a", "")
        ]
        read = [letters(chr(code)) for code in range(0x20000)]  # behind them are ideographs
        assert max(map(len, read)) == 1
        assert not any(one.isspace() for one in read)

    def test_comes_back_the_same(self, tmp_path):
        table = self.closed()
        table.save(tmp_path)
        loaded = load_classifier(str(tmp_path)).base
        assert loaded.digest == table.digest
        assert loaded.known.words == ("goal", "bank", "naive")
        for word in ("goal", "Bank", "other"):
            assert loaded.word_scores(word) == table.word_scores(word)
        assert table.renamed(("a", "b", "c")).known.words == table.known.words
        assert pickle.loads(pickle.dumps(table)).digest == table.digest
        assert self.closed(("goal", "bank", "naives")).digest != table.digest

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"words": ("goal", "goal", "bank")}, "2 different words"),
            ({"words": ("Goal", "bank", "it")}, "as the normaliser"),
            ({"words": ("", "bank", "it")}, "as the normaliser"),
            ({"vocabulary": spelt(("goal", "bank"))}, "2 different words"),
            ({"vocabulary": np.array([255, 10, 97, 10, 98], np.uint8)}, "as the normaliser"),
            ({"vocabulary": None}, "needs a vocabulary"),
            ({"normaliser": Normaliser("case")}, "as the normaliser"),
            ({"bias": np.array([1, 0, 0])}, "no bias"),
            ({"blank": np.array([1, 0, 0])}, "no bias and no blank"),
        ],
    )
    def test_what_is_refused(self, changes, message):
        with pytest.raises(ModelError, match=message):
            self.closed(**changes)
