"""Kept sets that depend on the words are certified by nobody, by whatever way one asks."""

import json
import os
from unittest import mock

import numpy as np
import pytest

from commands import run_cli
from ranmask import OptionError, SmoothedClassifier
from ranmask.certificates.exact import exact_radii
from ranmask.certificates.families import Family
from ranmask.certificates.sampled import sampled_margin
from ranmask.models.word_table import WordTable
from ranmask.options import CERTIFICATES, SmoothingOptions
from ranmask.smoothing.store import load_classifier, load_default
from ranmask.training.evaluating import certified_summary

REASON = "cannot be certified: its kept sets depend on the words"
TEXT = " ".join(f"w{place}" for place in range(40))


def parity(texts):
    """Does not look at words at all: is the visible word at an even place, or at an odd one?"""
    places = [[word != "[MASK]" for word in text.split()].index(True) for text in texts]
    return [[place % 2, 1 - place % 2] for place in places]


def losses(documents):
    return [np.array([1.0 + len(word) for word in one.words]) for one in documents]


def smoothed(sampling, **options):
    extra = {"word_losses": losses} if sampling == "lm" else {}
    return SmoothedClassifier(parity, keep=1, sampling=sampling, **extra, **options)


@pytest.mark.parametrize("sampling", ["fresh", "lm"])
class TestWhyTheyAreRefused:
    def test_a_radius_read_from_their_votes_would_be_wrong(self, sampling):
        """Taken for a fixed family, the votes prove a word; changing one word flips the label."""
        claims = broken = 0
        for seed in range(100):
            classifier = smoothed(sampling, seed=seed)
            [scored] = classifier.scored([TEXT])
            drawn = scored.texts[0].family
            as_if_fixed = Family("sampled", drawn.words, drawn.sets)
            if (exact_radii(scored.votes, [as_if_fixed])[0].words or 0) < 1:
                continue
            claims += 1
            changed = [TEXT.replace("w0 ", f"{new} ") for new in "abcdef"]
            [attacked] = classifier.scored(changed)
            broken += bool((attacked.votes.winners != scored.votes.winners).any())
        assert claims >= 3 and broken >= 3

    def test_over_a_fixed_family_this_classifier_cannot_be_moved(self, sampling):
        changed = [TEXT.replace("w0 ", f"{new} ") for new in "abcdef"]
        fixed = SmoothedClassifier(parity, keep=1, family="sampled", masks=100, seed=6)
        assert len({one.votes for one in fixed.predict([TEXT, *changed])}) == 1
        drawn = smoothed(sampling, seed=6).predict([TEXT, *changed])
        assert len({one.votes for one in drawn}) > 1


@pytest.mark.parametrize("sampling", ["fresh", "lm"])
class TestEveryWayIn:
    def test_certify(self, sampling):
        with pytest.raises(OptionError, match=REASON):
            smoothed(sampling).certify([TEXT])

    def test_nothing_is_classified_first(self, sampling):
        def never(texts):
            raise AssertionError

        extra = {"word_losses": never} if sampling == "lm" else {}
        classifier = SmoothedClassifier(never, keep=1, sampling=sampling, **extra)
        for refused in (classifier.certify, classifier.compare):
            with pytest.raises(OptionError, match=REASON):
                refused([TEXT])
            with pytest.raises(OptionError, match=REASON):
                refused([])

    @pytest.mark.parametrize("kind", CERTIFICATES)
    def test_compare(self, sampling, kind):
        with pytest.raises(OptionError, match=REASON):
            smoothed(sampling).compare([TEXT], [kind])

    @pytest.mark.parametrize("ensemble", ["vote", "score", "logit"])
    def test_any_ensemble(self, sampling, ensemble):
        classifier = smoothed(sampling, ensemble=ensemble)
        assert len(classifier.predict([TEXT])) == 1
        with pytest.raises(OptionError, match=REASON):
            classifier.certify([TEXT])

    def test_any_certificate(self, sampling):
        """One that samples at random cannot even be asked for."""
        for kind in CERTIFICATES[1:]:
            with pytest.raises(OptionError, match=f"means nothing with sampling='{sampling}'"):
                smoothed(sampling, certificate=kind)

    def test_a_reseeded_one(self, sampling):
        with pytest.raises(OptionError, match=REASON):
            smoothed(sampling).with_options(seed=4).certify([TEXT])

    def test_a_text_all_of_whose_words_are_kept(self, sampling):
        """Where nothing is hidden all draws are alike; it is refused all the same."""
        with pytest.raises(OptionError, match=REASON):
            smoothed(sampling).certify(["one"])

    def test_the_votes_themselves(self, sampling):
        [scored] = smoothed(sampling).scored([TEXT])
        votes, family = scored.votes, scored.texts[0].family
        for threat in ("substitutions", "edits"):
            with pytest.raises(OptionError, match=REASON):
                exact_radii(votes, [family], threat)
        for kind in CERTIFICATES[1:]:
            with pytest.raises(OptionError, match=REASON):
                sampled_margin(kind, votes, family, 0, alpha=0.05, seed=0)

    def test_options_that_were_exchanged_behind_its_back(self, sampling):
        classifier = smoothed(sampling)
        classifier.options = SmoothingOptions(keep=1)
        with pytest.raises(OptionError, match=REASON):
            classifier.certify([TEXT])

    def test_summaries(self, sampling):
        with pytest.raises(OptionError, match=REASON):
            certified_summary(smoothed(sampling), [TEXT], [0])


@pytest.fixture
def folder(tmp_path):
    """A model folder whose record says that masks are drawn for each text."""
    load_default("news-words", sampling="fresh").save_pretrained(str(tmp_path / "drawn"))
    record = json.loads((tmp_path / "drawn" / "ranmask.json").read_text())
    assert record["smoothing"]["sampling"] == "fresh"
    return tmp_path / "drawn"


@pytest.fixture
def run():
    """The command, in this process; it sets variables for its libraries, which are taken back."""
    with mock.patch.dict(os.environ):
        yield lambda *arguments: run_cli(*arguments)


def edited(folder, **options):
    path = folder / "ranmask.json"
    record = json.loads(path.read_text())
    record["smoothing"].update(options)
    path.write_text(json.dumps(record))


class TestSavedModels:
    def test_are_drawn_again_when_loaded(self, folder):
        loaded = load_classifier(str(folder))
        assert loaded.options == load_default("news-words", sampling="fresh").options
        assert loaded.options.sampling == "fresh"
        with pytest.raises(OptionError, match=REASON):
            loaded.certify([TEXT])
        with pytest.raises(OptionError, match=REASON):
            load_classifier(str(folder), keep=2).certify([TEXT])

    def test_are_certified_once_they_are_told_to_be_fixed(self, folder):
        loaded = load_classifier(str(folder), sampling="fixed")
        [result] = loaded.certify([TEXT])
        assert result.guarantee and result.family == "all"

    @pytest.mark.parametrize(
        "options",
        [
            {"family": "all"},
            {"certificate": "ablation", "ensemble": "vote"},
            {"threat": "edits"},
        ],
        ids=str,
    )
    def test_other_options_do_not_make_them_so(self, folder, options):
        with pytest.raises(OptionError, match="means nothing with sampling='fresh'"):
            load_classifier(str(folder), **options)

    @pytest.mark.parametrize(
        "command",
        [
            ["certify", "a b c"],
            ["certify", "--keep", "2", "a b c"],
            ["certify", "--masks", "50", "a b c"],
            ["certify", "--seed", "1", "a b c"],
            ["tune", "--data", "DATA", "--split", "test"],
        ],
        ids=lambda command: " ".join(command[:3]),
    )
    def test_commands_refuse_before_the_first_row(self, run, folder, tmp_path, command):
        (tmp_path / "data").mkdir()
        for part in ("train", "test"):
            rows = [f"a text {i},{('World', 'Sports')[i % 2]}" for i in range(40)]
            (tmp_path / "data" / f"{part}.csv").write_text("\n".join(["text,label", *rows]) + "\n")
        given = [str(tmp_path / "data") if one == "DATA" else one for one in command]
        done = run(*given, "--model", str(folder))
        assert done.exit_code == 2, done.output
        assert REASON in done.stderr and done.stdout == ""

    def test_nor_is_a_file_begun(self, run, folder, tmp_path):
        source = tmp_path / "in.txt"
        source.write_text("a b c\n")
        out = tmp_path / "out.jsonl"
        arguments = ["--model", str(folder), "--input", str(source), "--output", str(out)]
        done = run("certify", *arguments)
        assert done.exit_code == 2 and REASON in done.stderr and not out.exists()

    def test_certify_offers_no_sampling(self, run, folder):
        done = run("certify", "--model", str(folder), "--sampling", "fresh", "a b c")
        assert done.exit_code == 2 and "Unknown option" in done.stderr

    def test_a_record_that_asks_for_a_language_model(self, run, folder):
        """Nobody saves one; a hand-written one is told what is missing, and refused as well."""
        edited(folder, sampling="lm")
        with pytest.raises(OptionError, match="needs word_losses"):
            load_classifier(str(folder))
        done = run("certify", "--model", str(folder), "a b c")
        assert done.exit_code == 2 and "needs word_losses" in done.stderr
        loaded = load_classifier(str(folder), word_losses=losses)
        assert len(loaded.predict([TEXT])) == 1
        with pytest.raises(OptionError, match=REASON):
            loaded.certify([TEXT])

    @pytest.mark.parametrize(
        "options",
        [{"family": "all"}, {"certificate": "ablation", "ensemble": "vote"}, {"threat": "edits"}],
        ids=str,
    )
    def test_a_record_that_contradicts_itself(self, folder, options):
        edited(folder, **options)
        with pytest.raises(OptionError, match="means nothing with sampling='fresh'"):
            load_classifier(str(folder))

    def test_an_unknown_sampling(self, folder):
        edited(folder, sampling="luck")
        with pytest.raises(OptionError, match="sampling must be one of"):
            load_classifier(str(folder))


def test_a_table_is_still_a_table():
    """`WordTable.smoothing` certifies; drawn sets of the same table do not."""
    table = load_default("news-words").base
    assert isinstance(table, WordTable)
    assert SmoothedClassifier(table, **table.smoothing).certify([TEXT])[0].guarantee
    with pytest.raises(OptionError, match=REASON):
        SmoothedClassifier(table, keep=1, sampling="fresh").certify([TEXT])
