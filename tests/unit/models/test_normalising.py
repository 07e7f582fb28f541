"""Normal forms: spellings that are read as one, each of them one word."""

import copy
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ranmask.errors import MissingDependencyError, ModelError
from ranmask.models import normalising
from ranmask.models.normalising import Normaliser, installed
from ranmask.models.word_table import FILE_NAME, WordTable

ALIKE = {"а": "a", "е": "e", "о": "o", "р": "p", "с": "c", "Ѕ": "S", "ѕ": "s"}
CASE, LOOKALIKES = Normaliser("case"), Normaliser("lookalikes", ALIKE)
words = st.text(min_size=1).filter(lambda text: text.split() == [text])


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    entries = rng.integers(-90, 90, (512, 2)).astype(np.int8)
    bias = np.zeros(2, dtype=np.int64)
    return WordTable(entries, bias, labels=["a", "b"], shift=6, normaliser=LOOKALIKES)


class TestCase:
    @pytest.mark.parametrize("word", ["Film", "FILM,", "“film”", "film...", "(Film)"])
    def test_is_the_plain_word(self, word):
        assert CASE(word) == "film"

    @pytest.mark.parametrize("word", ["!?", "...", "é", "ﬁlm", "f.i.l.m"])
    def test_leaves_the_rest(self, word):
        assert CASE(word) == word

    def test_none_is_the_word(self):
        assert Normaliser()("Film,") == "Film,"


class TestLookalikes:
    @pytest.mark.parametrize(
        "word",
        [
            *("spam", "Spam!", "ѕраm", "Ѕраm"),  # Cyrillic
            *("s\u200bpam", "sp\u00adam", "\ufeffspam", "spam\ufe0f", "s\u2060pam\u200d"),
            *("ｓｐａｍ", "𝐬𝐩𝐚𝐦", "𝓢𝓹𝓪𝓶", "ⓢⓟⓐⓜ"),  # compatibility forms
            *("spám", "s̷p̷a̷m̷", "ѕр́а\u200bm"),  # marks
            *("s.p.a.m", "S-P-A-M", "s_p_a_m", "s*p.a-m!"),  # letters set apart
        ],
    )
    def test_are_the_plain_word(self, word):
        assert LOOKALIKES(word) == "spam"

    @pytest.mark.parametrize("word", ["u.s", "you_suck", "don't", "c++", "3.5"])
    def test_no_more_is_joined(self, word):
        assert LOOKALIKES(word) in (word, "c")

    @pytest.mark.parametrize("word", ["ﷺ", "ﷻ", "¨", "x\u00a8y", "⑴⑵", "㋿"])
    def test_nfkc_makes_no_words_of_one(self, word):
        assert any(unicodedata.normalize("NFKC", one) != one for one in word)
        assert LOOKALIKES(word).split() == [LOOKALIKES(word)]

    @pytest.mark.parametrize("word", ["한국", "हिन्दी", "日本", "δρόμος"])
    def test_other_scripts_keep_their_letters(self, word):
        assert len(LOOKALIKES(word)) == len(word)

    @pytest.mark.parametrize("word", ["\u200b", "\u200b\ufeff", "\ufe0f"])
    def test_what_is_not_seen_at_all_is_itself(self, word):
        assert LOOKALIKES(word) == word

    @given(words, st.sampled_from([CASE, LOOKALIKES]))
    @example("ﷺ", LOOKALIKES)
    @example("\u2028" + "a", LOOKALIKES)
    def test_a_normal_form_is_one_word(self, word, normaliser):
        if word.split() == [word]:
            normal = normaliser(word)
            assert normal and normal.split() == [normal]

    @given(st.text("aecopsx", min_size=1), st.data())
    def test_no_mixture_of_scripts_is_told_apart(self, word, data):
        other = {read: one for one, read in ALIKE.items() if one.islower()}
        mixed = "".join(
            data.draw(st.sampled_from(["", "\u200b", "\u00ad"]))
            + (other.get(one, one) if data.draw(st.booleans()) else one)
            for one in word
        )
        assert LOOKALIKES(mixed) == LOOKALIKES(word) == word

    def test_the_list_is_checked(self):
        for bad in ({"a": "b"}, {"аа": "a"}, {"а": "é"}, {"а": ""}, {"а": "a b"}):
            with pytest.raises(ModelError, match="cannot read"):
                Normaliser("lookalikes", bad)
        with pytest.raises(ModelError, match="no list"):
            Normaliser("case", ALIKE)
        with pytest.raises(ModelError, match="one of none, case, lookalikes, letters, not 'x'"):
            Normaliser("x")


class TestInstalled:
    def test_reads_unicodes_list(self):
        pytest.importorskip("confusable_homoglyphs")
        normaliser = installed("lookalikes")
        assert len(normaliser.lookalikes) > 1000
        for word in ("ѕрам", "ЅРАМ", "ѕρɑｍ"):  # of several alphabets
            assert normaliser(word) == "spam"
        assert normaliser("ІNCREDIBLЕ") == "incredible"
        assert normaliser("don’t") == "don't"

    def test_is_needed_for_lookalikes_alone(self, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "confusable_homoglyphs", None)
        assert installed("case") == CASE and installed("none") == Normaliser()
        with pytest.raises(MissingDependencyError, match=r"ranmask\[lookalikes\]"):
            installed("lookalikes")


class TestInATable:
    def test_spellings_have_one_score(self, table):
        for other in ("ѕраm", "SPAM!", "s\u200bpam", "s.p.a.m"):
            assert table.word_scores(other) == table.word_scores("spam")
        assert table.word_scores("spa") != table.word_scores("spam")

    def test_the_file_keeps_the_list(self, table, tmp_path, monkeypatch):
        table.save(tmp_path)
        monkeypatch.setattr(normalising, "_lookalikes", dict)  # what is installed does not matter
        loaded = WordTable.load(tmp_path)
        assert loaded.normaliser == LOOKALIKES and loaded.digest == table.digest
        assert loaded.word_scores("ѕраm") == table.word_scores("spam")
        for same in (copy.copy(table), table.renamed(["c", "d"])):
            assert same.normaliser == LOOKALIKES

    def test_the_digest_covers_the_list(self, table, tmp_path):
        entries, bias = table._entries, table._bias
        digests = {
            WordTable(entries, bias, labels=["a", "b"], shift=6, normaliser=one).digest
            for one in (None, CASE, LOOKALIKES, Normaliser("lookalikes", {"а": "a"}))
        }
        assert len(digests) == 4
        table.save(tmp_path)
        content = (tmp_path / FILE_NAME).read_bytes()
        assert content.count(rb"0430\": \"a") == 1
        (tmp_path / FILE_NAME).write_bytes(content.replace(rb"0430\": \"a", rb"0430\": \"z"))
        with pytest.raises(ModelError, match="damaged"):
            WordTable.load(tmp_path)

    def test_a_normaliser_of_a_later_version_is_refused(self, table, tmp_path):
        table.save(tmp_path)
        content = (tmp_path / FILE_NAME).read_bytes()
        (tmp_path / FILE_NAME).write_bytes(content.replace(b"lookalikes", b"lookaliket"))
        with pytest.raises(ModelError, match=FILE_NAME):
            WordTable.load(tmp_path)
