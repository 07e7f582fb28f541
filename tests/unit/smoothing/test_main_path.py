"""From a text to a certificate: how far it is, and that one definition of each thing is used."""

from dataclasses import replace

import numpy as np
import pytest
from tools.main_path import TEXT, certify_again, functions_called

from ranmask import SmoothedClassifier, SynonymSets, SynonymSmoothedClassifier, load_default
from ranmask.errors import OptionError
from ranmask.models.testing import hashing_classifier, keyword_classifier
from ranmask.words import document, documents

TEXTS = ["a good film", "bad plot and bad cast", "good good good bad"]


def test_the_main_path_is_short():
    called = certify_again()
    modules = {module for module, _ in called}
    assert len(called) <= 40, sorted(called)
    assert len(modules) <= 8, sorted(modules)


@pytest.mark.parametrize("options", [{}, {"certificate": "ablation"}, {"family": "distinct"}])
def test_a_text_is_read_once(options):
    table = load_default("reviews-words", **options)
    called = functions_called(lambda: table.certify([TEXT, *TEXTS]))
    assert called["words", "document"] == 1 + len(TEXTS)
    read = documents([TEXT, *TEXTS])
    again = functions_called(lambda: table.certify(read))
    assert ("words", "split") not in again
    assert table.certify(read) == table.certify([TEXT, *TEXTS])


class TestWithOptions:
    def test_what_is_not_given_stays(self):
        first = SmoothedClassifier(
            hashing_classifier, keep=2, masks=30, labels=["a", "b"], tolerance=0.1, recheck=2
        )
        other = first.with_options(seed=5)
        assert other.options == replace(first.options, seed=5)
        assert other.description() == {
            **first.description(),
            "options": other.options.resolved().to_dict(),
        }
        assert other.base is first.base and other.recheck == 2

    def test_settings_and_base(self):
        first = SmoothedClassifier(keyword_classifier, keep=1)
        base = SmoothedClassifier(hashing_classifier, keep=1).base
        other = first.with_options(base=base, labels=["x", "y"], tolerance=0.5, recheck=0)
        assert (other.base, other.labels) == (base, ("x", "y"))
        assert (other.tolerance, other.recheck) == (0.5, 0)
        assert first.labels is None and first.given_tolerance is None

    def test_what_was_chosen_for_another_certificate_is_left_out(self):
        first = SmoothedClassifier(keyword_classifier, keep=1, family="all", ensemble="score")
        other = first.with_options(certificate="ablation")
        assert (other.options.family, other.options.ensemble) == (None, "vote")
        with pytest.raises(OptionError, match="certificate must be one of"):
            first.with_options(certificate="none")

    def test_synonyms(self):
        films = SynonymSets({"film": ["movie"], "movie": ["film"]})
        first = SynonymSmoothedClassifier(keyword_classifier, films, masks=20, labels=["n", "p"])
        other = first.with_options(seed=3)
        assert other.synonyms is films and other.labels == ("n", "p")
        assert other.options == replace(first.options, seed=3)


def test_copies_and_count_are_the_steps_of_predict():
    smoothed = SmoothedClassifier(keyword_classifier, keep=1)
    read = [document(text) for text in TEXTS]
    copies = list(smoothed.copies(read))
    votes = smoothed.count(smoothed.score(copies), read)
    assert votes.winners.tolist() == [one.label_id for one in smoothed.predict(TEXTS)]
    assert np.array_equal(votes.copies, [len(text.split()) for text in TEXTS])


class TestCertified:
    TEXT = "good good good good bad"

    def test_up_to_the_radius(self):
        [result] = SmoothedClassifier(keyword_classifier, keep=1).certify([self.TEXT])
        assert result.radius == 1
        assert [result.certified(words) for words in range(4)] == [True, True, False, False]
        assert result.certified(np.int64(1)) is True

    def test_nothing_where_nothing_is_proved(self):
        smoothed = SmoothedClassifier(keyword_classifier, keep=1)
        [tie] = smoothed.certify(["good bad"])
        assert tie.radius is None and not tie.certified(0)
        [printed] = smoothed.with_options(certificate="paper-as-printed").certify([self.TEXT])
        assert not any(printed.certified(words) for words in range(3))

    @pytest.mark.parametrize("words", [-1, True, 1.0, None, "1"])
    def test_what_is_no_number_of_words(self, words):
        [result] = SmoothedClassifier(keyword_classifier, keep=1).certify([self.TEXT])
        with pytest.raises(OptionError, match="words must be a whole number of at least 0"):
            result.certified(words)
