"""The mean of several classifiers is certified as one."""

import json

import numpy as np
import pytest

from ranmask import Blend, FunctionClassifier, SmoothedClassifier, WordTable
from ranmask.certificates.families import all_sets
from ranmask.certificates.votes import as_scores, largest_move
from ranmask.errors import ModelError, OptionError, OutputError
from ranmask.models.base import MaskedCopies
from ranmask.smoothing.store import blend_folders
from ranmask.words import document

LABELS = ("left", "right")


def table(seed, labels=LABELS):
    draw = np.random.default_rng(seed)
    entries = draw.integers(-100, 100, (64, 2)).astype(np.int8)
    return WordTable(entries, np.zeros(2, dtype=np.int64), labels=labels, shift=6)


def logits(texts):
    return [[len(text) % 5 - 2.0, len(text) % 3 - 1.0] for text in texts]


def copies(text):
    read = document(text)
    return MaskedCopies(read, len(read.words), all_sets(len(read.words), 1))


class TestScores:
    def test_are_the_mean_of_the_parts(self):
        one, other = table(1), table(2)
        shown = copies("a few words of no meaning")
        [blended] = Blend([one, other]).score([shown])
        [first], [second] = one.score([shown]), other.score([shown])
        np.testing.assert_array_equal(blended, (first + second) / 2)

    @pytest.mark.parametrize("outputs", ["logits", "approvals"])
    def test_parts_of_other_outputs_become_scores_first(self, outputs):
        part = FunctionClassifier(logits, outputs=outputs, labels=LABELS)
        shown = copies("some longer words here")
        [blended] = Blend([table(1), part]).score([shown])
        [first] = table(1).score([shown])
        [raw] = part.score([shown])
        np.testing.assert_allclose(blended, (first + as_scores(raw, outputs)) / 2)
        assert blended.min() >= 0
        assert blended.max() <= 1

    def test_the_blend_of_a_table_with_itself_certifies_as_the_table(self):
        text = "one two three four five six seven eight nine ten"
        alone = SmoothedClassifier(table(3), **WordTable.smoothing).certify([text])
        twice = Blend([table(3), table(3)])
        assert SmoothedClassifier(twice, **WordTable.smoothing).certify([text]) == alone


class _Moving(FunctionClassifier):
    tolerance = 0.8


class TestTolerance:
    @pytest.mark.parametrize(("outputs", "move"), [("logits", 0.2), ("approvals", 0.1)])
    def test_is_that_of_the_mean(self, outputs, move):
        part = _Moving(logits, outputs=outputs, labels=LABELS)
        assert largest_move(0.8, outputs) == pytest.approx(move)
        assert Blend([part, table(1)]).tolerance == pytest.approx(2 * move / 2)

    def test_no_score_moves_farther(self):
        """Logits that move by half the tolerance each, in any direction."""
        draw = np.random.default_rng(0)
        for outputs in ("logits", "approvals"):
            raw = draw.normal(size=(500, 3)) * 3
            moved = raw + draw.choice([-0.05, 0.05], size=raw.shape)
            apart = np.abs(as_scores(raw, outputs) - as_scores(moved, outputs))
            assert apart.max() <= largest_move(0.1, outputs)

    def test_exact_parts_make_an_exact_blend(self):
        assert Blend([table(1), table(2)]).tolerance == 0


class TestProperties:
    def test_reads_no_more_words_than_each_part(self):
        class Short(FunctionClassifier):
            def words_read(self, document):
                return min(3, len(document.words))

        blend = Blend([Short(logits, labels=LABELS), table(1)])
        assert blend.words_read(document("a b c d e")) == 3

    def test_is_blind_to_order_only_if_all_parts_are(self):
        assert Blend([table(1), table(2)]).order_free
        assert not Blend([table(1), FunctionClassifier(logits, labels=LABELS)]).order_free

    def test_reads_pairs_only_if_all_parts_may(self):
        assert Blend([table(1), FunctionClassifier(logits, labels=LABELS)]).pairs is False
        function = FunctionClassifier(logits, labels=LABELS)
        assert Blend([function, function]).pairs is None

    def test_refuses_one_part_and_other_classes(self):
        with pytest.raises(OptionError, match="at least two"):
            Blend([table(1)])
        with pytest.raises(ModelError, match="same classes"):
            Blend([table(1), table(2, labels=("up", "down"))])

    def test_hiding_belongs_to_the_parts(self):
        with pytest.raises(OptionError, match="belong to the parts"):
            SmoothedClassifier(Blend([table(1), table(2)]), keep=1, hide="drop")


class TestFolders:
    def saved(self, tmp_path):
        for seed in (1, 2):
            table(seed).save(tmp_path / f"table{seed}")
        return [str(tmp_path / "table1"), str(tmp_path / "table2")]

    def test_round_trip(self, tmp_path):
        blend = SmoothedClassifier(Blend([table(1), table(2)]), **WordTable.smoothing)
        blend.save_pretrained(str(tmp_path / "blend"))
        again = SmoothedClassifier.from_pretrained(str(tmp_path / "blend"))
        assert again.description() == blend.description()
        text = "a text of several words that all count"
        assert again.certify([text]) == blend.certify([text])

    def test_of_folders(self, tmp_path):
        made = blend_folders(self.saved(tmp_path), tmp_path / "blend")
        again = SmoothedClassifier.from_pretrained(str(tmp_path / "blend"))
        text = "a text of several words that all count"
        assert again.certify([text]) == made.certify([text])
        assert made.base.description() == Blend([table(1), table(2)]).description()

    def test_an_existing_folder_is_left_alone(self, tmp_path):
        parts = self.saved(tmp_path)
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "file").touch()
        with pytest.raises(OutputError, match="exists"):
            blend_folders(parts, tmp_path / "mine")
        with pytest.raises(OutputError, match="lies inside"):
            blend_folders(parts, tmp_path / "table1" / "blend")
        assert not list((tmp_path / "table1").glob("blend*"))

    def test_what_cannot_be_read_or_written_is_named(self, tmp_path):
        parts = self.saved(tmp_path)
        with pytest.raises(ModelError, match="no model folder"):
            blend_folders([parts[0], "absent"], tmp_path / "blend")
        (tmp_path / "file").touch()
        with pytest.raises(OutputError, match="cannot write"):
            blend_folders(parts, tmp_path / "file" / "blend")

    def test_shipped_models_by_name(self, tmp_path):
        made = blend_folders(["news-words", "news-words"], tmp_path / "blend")
        assert made.labels == ("World", "Sports", "Business", "Sci/Tech")

    def test_parts_keep_their_own_smoothing_and_no_tolerance(self, tmp_path):
        blend = SmoothedClassifier(
            Blend([table(1), table(2)]), **WordTable.smoothing, tolerance=1e-3
        )
        blend.save_pretrained(str(tmp_path / "blend"))
        part = SmoothedClassifier.from_pretrained(str(tmp_path / "blend" / "part1"))
        assert part.tolerance == 0
        assert part.options.family == "all"
        assert SmoothedClassifier.from_pretrained(str(tmp_path / "blend")).tolerance == 1e-3

    @pytest.mark.parametrize("option", [{"hide": "drop"}, {"revision": "x"}])
    def test_options_without_meaning_are_refused(self, tmp_path, option):
        blend_folders(self.saved(tmp_path), tmp_path / "blend")
        with pytest.raises(OptionError, match="means nothing"):
            SmoothedClassifier.from_pretrained(str(tmp_path / "blend"), **option)

    @pytest.mark.parametrize("parts", [["part1"], ["part1", "../table1"], "part1", ["part1", ".."]])
    def test_parts_lie_inside(self, tmp_path, parts):
        blend_folders(self.saved(tmp_path), tmp_path / "blend")
        path = tmp_path / "blend" / "ranmask.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "parts": parts}))
        with pytest.raises(ModelError, match="folders inside"):
            SmoothedClassifier.from_pretrained(str(tmp_path / "blend"))

    def test_a_missing_part_is_named(self, tmp_path):
        blend_folders(self.saved(tmp_path), tmp_path / "blend")
        (tmp_path / "blend" / "part2" / "ranmask.json").unlink()
        with pytest.raises(ModelError, match="part2"):
            SmoothedClassifier.from_pretrained(str(tmp_path / "blend"))
