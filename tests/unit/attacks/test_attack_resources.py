"""Linguistic resources from made-up files: what they promise, and every way they can fail."""

import gzip
import hashlib
import json
import os
import subprocess
import sys
import types
from pathlib import Path
from random import Random

import numpy as np
import pytest
from tools.wordnet_file import packed

from ranmask.attacks.resources import (
    NeighbourTable,
    NltkTagger,
    StopWords,
    UniversalSentenceEncoder,
    WordVectors,
    load_neighbours,
    load_sentence_encoder,
    load_stop_words,
    load_tagger,
    neighbours,
)
from ranmask.attacks.resources.files import (
    SHIPPED,
    STOP_WORDS,
    TAGGER,
    UNIVERSAL_TAGS,
    nltk_file,
    read_json,
    read_lines,
)
from ranmask.attacks.resources.neighbours import load_synonyms
from ranmask.errors import DataError, MissingDependencyError, ModelError, OptionError


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    """No NLTK data and no data folder, but those that a test makes."""
    monkeypatch.delenv("NLTK_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RANMASK_DATA", str(tmp_path / "nowhere"))


def test_importing_them_is_light():
    heavy = {"torch", "transformers", "nltk", "tensorflow"}
    code = f"import sys, ranmask.attacks.resources; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


class TestNltkFiles:
    def test_the_folder_that_is_named_wins(self, tmp_path, monkeypatch):
        monkeypatch.setenv("NLTK_DATA", str(tmp_path / "other"))
        for place in ("named", "other"):
            write(tmp_path / place / STOP_WORDS, "the\n")
        assert nltk_file(STOP_WORDS, tmp_path / "named") == tmp_path / "named" / STOP_WORDS
        assert nltk_file(STOP_WORDS) == tmp_path / "other" / STOP_WORDS

    def test_the_variable_may_list_folders(self, tmp_path, monkeypatch):
        places = [tmp_path / "first", tmp_path / "second"]
        monkeypatch.setenv("NLTK_DATA", os.pathsep.join(map(str, places)))
        write(places[1] / STOP_WORDS, "the\n")
        assert nltk_file(STOP_WORDS) == places[1] / STOP_WORDS
        write(places[0] / STOP_WORDS, "the\n")
        assert nltk_file(STOP_WORDS) == places[0] / STOP_WORDS

    def test_the_data_folder_and_then_nltks_own(self, tmp_path, monkeypatch):
        own = write(tmp_path / "home" / "nltk_data" / STOP_WORDS, "the\n")
        assert nltk_file(STOP_WORDS) == own
        monkeypatch.setenv("RANMASK_DATA", str(tmp_path / "data"))
        ours = write(tmp_path / "data" / "nltk" / STOP_WORDS, "the\n")
        assert nltk_file(STOP_WORDS) == ours

    def test_what_comes_with_ranmask_is_the_last(self, tmp_path, monkeypatch):
        write(tmp_path / "home" / "nltk_data" / STOP_WORDS, "the\n")
        monkeypatch.setenv("NLTK_DATA", str(tmp_path / "empty"))
        assert nltk_file(STOP_WORDS) == SHIPPED / "nltk" / STOP_WORDS
        assert nltk_file(f"{TAGGER}.weights.json").name.endswith(".weights.json.gz")
        with pytest.raises(DataError, match="empty"):
            nltk_file("corpora/other")

    @pytest.mark.parametrize(
        ("file", "package"),
        [
            (STOP_WORDS, "stopwords"),
            (f"{TAGGER}.weights.json", "averaged_perceptron_tagger_eng"),
            (UNIVERSAL_TAGS, "universal_tagset"),
        ],
    )
    def test_the_error_says_how_to_get_it(self, tmp_path, file, package):
        with pytest.raises(DataError, match=rf"nltk\.downloader -d FOLDER {package}'") as caught:
            nltk_file(file, tmp_path)
        assert str(tmp_path) in str(caught.value)


class TestStopWords:
    def test_textfoolers_list_comes_with_ranmask(self):
        stop = load_stop_words("textfooler")
        assert len(stop.words) == 266
        assert stop.words >= {"the", "i", "wasn't", "yourselves"}
        assert not stop.words & {"film", "#", ""}
        assert stop.name == stop.description()["name"] == "textfooler"

    def test_nltks_list(self, tmp_path):
        write(tmp_path / STOP_WORDS, "i\nme\n")
        assert load_stop_words("nltk", tmp_path).words == {"i", "me"}
        shipped = load_stop_words("nltk").words
        assert len(shipped) == 179 and shipped >= {"i", "me", "wasn't"}

    def test_none(self):
        assert load_stop_words("none") == StopWords("none", frozenset())
        assert "the" not in load_stop_words("none").words

    def test_a_file(self, tmp_path):
        path = write(tmp_path / "own.txt", "# mine\nThe\r\n\nan\nan")
        stop = load_stop_words(path)
        assert (stop.name, stop.words) == ("own.txt", {"the", "an"})
        assert "the" in stop.words and "mine" not in stop.words
        assert load_stop_words(str(path)) == stop

    def test_the_digest_is_of_the_words(self, tmp_path):
        one = load_stop_words(write(tmp_path / "1.txt", "a\nthe\n")).description()
        other = load_stop_words(write(tmp_path / "2.txt", "The\na\n")).description()
        third = load_stop_words(write(tmp_path / "3.txt", "a\nthen\n")).description()
        assert one["sha256"] == other["sha256"] == hashlib.sha256(b"a\nthe").hexdigest()
        assert third["sha256"] != one["sha256"]
        assert one["words"] == 2
        json.dumps(one)

    def test_not_there(self):
        with pytest.raises(DataError, match=r"'english'.*textfooler, nltk, none"):
            load_stop_words("english")

    @pytest.mark.parametrize(
        ("text", "message"),
        [("the\nof the\n", "row 2: .*'of the'"), ("", "no words"), ("# a\n", "no words")],
    )
    def test_bad_files(self, tmp_path, text, message):
        with pytest.raises(DataError, match=message):
            load_stop_words(write(tmp_path / "bad.txt", text))

    def test_not_utf8(self, tmp_path):
        (tmp_path / "bad.txt").write_bytes(b"caf\xe9\n")
        with pytest.raises(DataError, match=r"bad\.txt is not UTF-8 text.*byte 3"):
            load_stop_words(tmp_path / "bad.txt")


WEIGHTS = {
    "bias": {"NN": 0.5},
    "i suffix ing": {"VBG": 2.0},
    "i-1 word the": {"NN": 3.0},
    "i word zzz": {"ZZ": 9.0},
}


@pytest.fixture
def tagger_folder(tmp_path):
    """An averaged perceptron of four features, in NLTK's layout."""
    folder = tmp_path / "nltk"
    parts = {"weights": WEIGHTS, "tagdict": {"the": "DT"}, "classes": ["NN", "VBG", "DT", "ZZ"]}
    for part, content in parts.items():
        write(folder / f"{TAGGER}.{part}.json", json.dumps(content))
    write(folder / UNIVERSAL_TAGS, "NN\tNOUN\nVBG\tVERB\n\nDT\tDET\n")
    return folder


class TestTagger:
    def test_tags_depend_on_the_words_around(self, tagger_folder):
        tagger = load_tagger(tagger_folder)
        assert tagger.tag(["dancing"]) == ("VERB",)
        assert tagger.tag(["the", "dancing"]) == ("DET", "NOUN")
        assert tagger.tag(("a", "film")) == ("NOUN", "NOUN")
        assert tagger.tag([]) == ()

    def test_the_one_that_comes_with_ranmask(self):
        tagger = load_tagger()
        words = ["Shares", "of", "airlines", "fell", "sharply", "on", "Monday", "."]
        tags = ("NOUN", "ADP", "NOUN", "VERB", "ADV", "ADP", "NOUN", ".")
        assert tagger.tag(words) == tags

    def test_an_unknown_tag_is_x(self, tagger_folder):
        assert load_tagger(tagger_folder).tag(["zzz"]) == ("X",)

    def test_the_first_words_are_tagged_in_the_company_of_all(self):
        weights = {"i+2 word well": {"VB": 1.0}, "bias": {"NN": 0.5}}
        tagger = NltkTagger(weights, {}, ["NN", "VB"], {"NN": "NOUN", "VB": "VERB"})
        words = ("swim", "very", "well")
        assert tagger.tag(words) == ("VERB", "NOUN", "NOUN")
        for first in range(4):
            assert tagger.tag(words, first) == tagger.tag(words)[:first]

    def test_of_a_tie_the_last_name_wins(self):
        tagger = NltkTagger({"bias": {"A": 1.0, "B": 1.0}}, {}, ["B", "C", "A"], {"B": "second"})
        assert tagger.tag(["any"]) == ("second",)

    def test_tags_are_those_of_nltk(self):
        """Word by word, odd ones too; with the weights that come with ranmask."""
        from nltk.tag.perceptron import PerceptronTagger

        parts = ("weights", "tagdict", "classes")
        stored = [read_json(nltk_file(f"{TAGGER}.{part}.json", None)) for part in parts]
        theirs, ours = PerceptronTagger.decode_json_obj(stored), load_tagger()
        lines = [line for _, line in read_lines(nltk_file(UNIVERSAL_TAGS, None)) if line.strip()]
        universal = dict(line.strip().split("\t") for line in lines)
        odd = ["well-known", "-x", "1999", "4th", "", "$5", "ÄÖ", "\u0663", "Zxqv", "running", "I"]
        random = Random(0)
        sentences = [[random.choice(odd) for _ in range(7)] for _ in range(200)]
        sentences += [
            line.split() for line in Path(__file__).read_text(encoding="utf-8").split("\n")
        ]
        for words in sentences:
            expected = [universal.get(tag, "X") for _, tag in theirs.tag(words)]
            assert list(ours.tag(words)) == expected

    def test_the_digest_is_of_all_four_files(self, tagger_folder):
        digests = {load_tagger(tagger_folder).description()["sha256"]}
        for path in sorted(tagger_folder.rglob("*.*")):
            content = path.read_bytes()
            path.write_bytes(content + b"\n")
            digests.add(load_tagger(tagger_folder).description()["sha256"])
            path.write_bytes(content)
        assert len(digests) == 5

    @pytest.mark.parametrize(
        ("file", "text", "message"),
        [
            (f"{TAGGER}.weights.json", "{", r"weights\.json is not JSON"),
            (f"{TAGGER}.classes.json", "{}", "averaged perceptron"),
            (UNIVERSAL_TAGS, "NN\tNOUN\nVBG VERB\n", "row 2: .*two tags"),
        ],
    )
    def test_bad_files(self, tagger_folder, file, text, message):
        write(tagger_folder / file, text)
        with pytest.raises(DataError, match=message):
            load_tagger(tagger_folder)

    @pytest.mark.parametrize("file", [f"{TAGGER}.tagdict.json", UNIVERSAL_TAGS])
    def test_not_there(self, tagger_folder, file):
        (tagger_folder / file).unlink()
        with pytest.raises(DataError, match=r"nltk\.downloader"):
            load_tagger(tagger_folder)


class TestNeighbourTable:
    TABLE = {  # noqa: RUF012
        "film": ["film", "movie", "motion picture", "cinema", "movie", "", "@@UNKNOWN@@"],
        "Film": ["movie"],
        "dull": [],
        "it\x85": ["that"],
        "@@PADDING@@": [],
    }

    @pytest.mark.parametrize("packed", [False, True])
    def test_a_file(self, tmp_path, packed):
        path = tmp_path / ("own.json.gz" if packed else "own.json")
        content = json.dumps(self.TABLE).encode()
        path.write_bytes(gzip.compress(content) if packed else content)
        table = load_neighbours(path)
        assert table.nearest("film", 50) == ("movie", "cinema")
        assert table.nearest("film", 1) == ("movie",)
        assert table.nearest("Film", 50) == ("movie",)
        assert table.nearest("dull", 50) == table.nearest("unknown", 50) == ()
        assert table.nearest("it\x85", 50) == ()
        assert table.similarity("film", "movie") is None
        described = table.description()
        assert described["name"] == path.name
        assert described["source"] == str(path)
        assert described["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert (described["words"], described["words_with_neighbours"]) == (3, 2)
        dropped = {"whitespace": 3, "special": 2, "itself": 1, "repeated": 1}
        assert described["dropped"] == dropped
        json.dumps(described)

    def test_cannot_be_changed(self):
        table = NeighbourTable(self.TABLE)
        with pytest.raises(TypeError):
            table.table["film"] = ("plot",)

    @pytest.mark.parametrize("count", [0, -1])
    def test_count(self, count):
        with pytest.raises(OptionError, match=f"at least 1, not {count}"):
            NeighbourTable(self.TABLE).nearest("film", count)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("[", "is not JSON"),
            ("[]", "a JSON object"),
            ("{}", "a JSON object"),
            ('{"film": "movie"}', "neighbours of 'film'"),
            ('{"film": ["movie", 1]}', "neighbours of 'film'"),
        ],
    )
    def test_bad_files(self, tmp_path, text, message):
        with pytest.raises(DataError, match=message):
            load_neighbours(write(tmp_path / "bad.json", text))

    def test_damaged_gzip(self, tmp_path):
        path = tmp_path / "bad.json.gz"
        path.write_bytes(gzip.compress(b'{"film": ["movie"]}')[:-9])
        with pytest.raises(DataError, match=r"cannot read .*bad\.json\.gz"):
            load_neighbours(path)
        path.write_bytes(gzip.compress(b"")[:10] + b"\xff" * 20)
        with pytest.raises(DataError, match=r"cannot read .*bad\.json\.gz"):
            load_neighbours(path)
        path.write_bytes(b"{}")
        with pytest.raises(DataError, match=r"cannot read .*bad\.json\.gz"):
            load_neighbours(path)


class TestNamedNeighbours:
    def test_from_the_data_folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("RANMASK_DATA", str(tmp_path))
        path = tmp_path / "synonyms" / "jia2019_counterfitted_neighbors.json.gz"
        path.parent.mkdir()
        path.write_bytes(gzip.compress(b'{"film": ["movie"]}'))
        table = load_neighbours("jia2019")
        assert table.nearest("film", 8) == ("movie",)
        assert table.description()["name"] == "jia2019"
        with pytest.raises(DataError, match=rf"'dne'.*not in {tmp_path}.*synonyms/dne_"):
            load_neighbours("dne")

    def test_one_comes_with_ranmask(self):
        table = load_neighbours("jia2019")
        assert table.description()["words_with_neighbours"] == 25591 and "movie" in table.nearest(
            "film", 8
        )
        assert load_synonyms("jia2019").name == "jia2019"

    def test_no_data_folder(self, monkeypatch, tmp_path):
        with pytest.raises(DataError, match=r"'safer2020'.*RANMASK_DATA=.*nowhere"):
            load_neighbours("safer2020")
        monkeypatch.delenv("RANMASK_DATA")
        monkeypatch.setattr("ranmask.attacks.resources.neighbours.data_folder", lambda: None)
        with pytest.raises(DataError, match="there is no data folder"):
            load_neighbours("safer2020")

    def test_not_there(self):
        with pytest.raises(DataError, match=r"'jia2020'.*jia2019, safer2020, dne"):
            load_neighbours("jia2020")

    @pytest.mark.parametrize("name", ["vectors.bin", "table.gz"])
    def test_unknown_kinds(self, tmp_path, name):
        with pytest.raises(DataError, match=rf"{name} is by its name"):
            load_neighbours(write(tmp_path / name, "x"))


LINES = "good 1 0 0\nfine 3 3 0\nbad -1 0 0\nnice 2 2 0\nodd 0 0 5\n"


class TestWordVectors:
    def test_a_file(self, tmp_path):
        path = write(tmp_path / "v.txt", LINES)
        vectors = load_neighbours(path)
        # fine and nice point the same way: the order of the file decides.
        assert vectors.nearest("good", 2) == ("fine", "nice")
        assert vectors.nearest("good", 1) == ("fine",)
        assert vectors.nearest("good", 99) == ("fine", "nice", "odd", "bad")
        assert vectors.nearest("nice", 1) == ("fine",)
        assert vectors.nearest("Good", 2) == ()
        assert vectors.similarity("good", "fine") == pytest.approx(np.sqrt(0.5))
        assert vectors.similarity("good", "bad") == pytest.approx(-1)
        assert vectors.similarity("good", "unknown") is None
        assert vectors.similarity("unknown", "good") is None
        described = vectors.description()
        assert described["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert (described["words"], described["dimensions"]) == (5, 3)
        json.dumps(described)

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("v.txt", LINES.replace("\n", "\r\n")),
            ("v.txt", LINES.replace("\n", " \n").removesuffix("\n")),
            ("v.txt", "5 3\n" + LINES),
        ],
        ids=["crlf", "blank at the end", "word2vec"],
    )
    def test_other_ways_to_write_it(self, tmp_path, name, text):
        vectors = load_neighbours(write(tmp_path / name, text))
        assert vectors.nearest("good", 99) == ("fine", "nice", "odd", "bad")

    def test_only_a_line_feed_ends_a_line(self, tmp_path):
        """Vocabularies hold words with other ends of lines in them."""
        vectors = load_neighbours(write(tmp_path / "v.txt", LINES + "it\x85 1 1 1\n\u2028 1 0 1\n"))
        assert vectors.description()["dropped"]["whitespace"] == 2
        assert vectors.description()["words"] == 5

    def test_packed(self, tmp_path):
        (tmp_path / "v.txt.gz").write_bytes(gzip.compress(LINES.encode()))
        assert load_neighbours(tmp_path / "v.txt.gz").nearest("good", 1) == ("fine",)

    def test_a_matrix_and_its_words(self, tmp_path):
        matrix = np.array([line.split()[1:] for line in LINES.splitlines()], dtype=np.float64)
        np.save(tmp_path / "v.npy", matrix)
        listed = write(tmp_path / "v.words.txt", "good\nfine\nbad\nnice\nodd\n")
        vectors = load_neighbours(tmp_path / "v.npy")
        assert vectors.nearest("good", 99) == ("fine", "nice", "odd", "bad")
        before = vectors.description()["sha256"]
        write(listed, "good\nfine\nbad\nnice\neven\n")
        assert load_neighbours(tmp_path / "v.npy").description()["sha256"] != before
        write(listed, "good\n")
        with pytest.raises(DataError, match=r"1 words need .*\(5, 3\)"):
            load_neighbours(tmp_path / "v.npy")
        listed.unlink()
        with pytest.raises(DataError, match=r"v\.words\.txt"):
            load_neighbours(tmp_path / "v.npy")

    def test_agrees_with_sorting_all_cosines(self):
        draw = np.random.default_rng(0)
        # Few different vectors, so that most cosines are tied.
        matrix = draw.integers(-1, 2, size=(300, 3)) + 0.0
        matrix[~matrix.any(axis=1)] = 1
        words = [f"w{place}" for place in range(300)]
        vectors = WordVectors(words, matrix)
        unit = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
        for place in range(0, 300, 7):
            cosines = unit @ unit[place]
            order = sorted(range(300), key=lambda other: (-cosines[other], other))
            order.remove(place)
            for count in (1, 20, 299, 500):
                expected = tuple(words[other] for other in order[:count])
                assert vectors.nearest(words[place], count) == expected

    def test_words_that_are_left_out(self):
        words = ["a", "b c", "a", "", "zero", "it\x85", "d"]
        matrix = np.array([[1, 0], [1, 0], [0, 1], [1, 1], [0, 0], [1, 0], [1, 2]], dtype=float)
        vectors = WordVectors(words, matrix)
        assert vectors.nearest("a", 9) == ("d",)
        assert vectors.similarity("a", "d") == pytest.approx(1 / np.sqrt(5))
        assert vectors.description()["dropped"] == {"whitespace": 3, "repeated": 1, "zero": 1}

    def test_a_single_word(self):
        assert WordVectors(["a"], np.ones((1, 2))).nearest("a", 5) == ()

    def test_count(self):
        with pytest.raises(OptionError, match="at least 1, not 0"):
            WordVectors(["a"], np.ones((1, 2))).nearest("a", 0)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "is empty"),
            ("good\n", "row 1: .*'good' has 0 numbers"),
            ("good 1 0\nbad 1\n", "row 2: .*'bad' has 1 numbers, not 2"),
            ("good 1 0\n\nbad 1 1\n", "row 2: .*'' has 0 numbers"),
            ("good 1 x\n", "row 1: .*'x'"),
            ("good 1 nan\n", "'good' is not of finite"),
            ("good 0 0\n", "has no words"),
        ],
    )
    def test_bad_files(self, tmp_path, text, message):
        with pytest.raises(DataError, match=message):
            load_neighbours(write(tmp_path / "bad.txt", text))

    def test_bad_matrices(self, tmp_path):
        write(tmp_path / "bad.words.txt", "a\nb\n")
        path = write(tmp_path / "bad.npy", "no matrix")
        with pytest.raises(DataError, match=r"cannot read .*bad\.npy"):
            load_neighbours(path)
        np.save(path, np.array(["a", "b"], dtype=object), allow_pickle=True)
        with pytest.raises(DataError, match=r"cannot read .*bad\.npy"):
            load_neighbours(path)  # never unpickled
        np.save(path, np.array([[1, 2], [3, 4]]))
        with pytest.raises(DataError, match="floating-point"):
            load_neighbours(path)
        np.save(path, np.ones(2))
        with pytest.raises(DataError, match=r"shape \(2,\)"):
            load_neighbours(path)
        with pytest.raises(DataError, match="there is no file"):
            WordVectors.load(tmp_path / "none.npy")


class FakeTensorFlow(types.ModuleType):
    """As much of TensorFlow as loading needs; a vector counts letters."""

    def __init__(self, callable_module=True, broken=False):
        super().__init__("tensorflow")
        self.saved_model = self
        self.passes = []
        self.callable_module = callable_module
        self.broken = broken

    def constant(self, values):
        return ("constant", values)

    def load(self, folder, tags):
        if self.broken:
            raise OSError("no variables")
        self.loaded = (folder, tags)

        def vectors(sentences):
            self.passes.append(list(sentences))
            return [[2.0 * len(one), one.count("a") + 0.5] for one in sentences]

        if self.callable_module:
            return vectors
        signature = {"default": lambda given: {"default": vectors(given[1])}}
        return types.SimpleNamespace(signatures=signature)


@pytest.fixture
def use_folder(tmp_path):
    write(tmp_path / "use" / "saved_model.pb", "graph")
    write(tmp_path / "use" / "variables" / "variables.index", "weights")
    return tmp_path / "use"


class TestUniversalSentenceEncoder:
    @pytest.mark.parametrize("old", [False, True])
    def test_unit_rows_each_sentence_once(self, use_folder, monkeypatch, old):
        tensorflow = FakeTensorFlow(callable_module=not old)
        if old:
            write(use_folder / "tfhub_module.pb", "")
        monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)
        encoder = load_sentence_encoder(use_folder)
        assert tensorflow.loaded == (str(use_folder), [] if old else None)
        rows = encoder.encode(["a", "bb", "a"])
        expected = np.array([[2, 1.5], [4, 0.5], [2, 1.5]])
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        np.testing.assert_allclose(rows, expected, rtol=1e-6)
        assert rows.dtype == np.float32
        assert tensorflow.passes == [["a", "bb"]]
        assert encoder.encode([]).shape == (0, 2)

    def test_many_sentences(self, use_folder, monkeypatch):
        tensorflow = FakeTensorFlow()
        monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)
        sentences = [f"{'a' * (number % 7)} {number}" for number in range(600)]
        rows = UniversalSentenceEncoder.load(use_folder).encode(sentences)
        assert max(map(len, tensorflow.passes)) < 600
        one_by_one = [UniversalSentenceEncoder.load(use_folder).encode([s])[0] for s in sentences]
        np.testing.assert_allclose(rows, one_by_one, rtol=1e-6)

    def test_description(self, use_folder, monkeypatch):
        monkeypatch.setitem(sys.modules, "tensorflow", FakeTensorFlow())
        before = UniversalSentenceEncoder.load(use_folder).description()
        assert before["sha256"] == hashlib.sha256(b"graphweights").hexdigest()
        assert before["name"] == "universal-sentence-encoder"
        json.dumps(before)

    def test_without_tensorflow(self, use_folder, monkeypatch):
        monkeypatch.setitem(sys.modules, "tensorflow", None)
        with pytest.raises(MissingDependencyError, match="tensorflow"):
            load_sentence_encoder(use_folder)

    def test_no_saved_model(self, tmp_path):
        with pytest.raises(DataError, match=r"no saved_model\.pb"):
            UniversalSentenceEncoder.load(tmp_path)

    def test_damaged(self, use_folder, monkeypatch):
        monkeypatch.setitem(sys.modules, "tensorflow", FakeTensorFlow(broken=True))
        with pytest.raises(ModelError, match="no variables"):
            load_sentence_encoder(use_folder)


SENSES = {
    "noun": [["film", "movie", "motion_picture"], ["goose"], ["well"]],
    "verb": [["film", "shoot", "take"], ["go", "travel"]],
    "adj": [["good(a)", "Goodly"], ["well", "fit(p)"]],
    "adv": [["well", "good"]],
}
IRREGULAR = {"noun": "geese goose\n", "verb": "went go\n", "adj": "better good\n", "adv": ""}


class TestWordNet:
    @pytest.fixture
    def folder(self, tmp_path):
        for kind, senses in SENSES.items():
            data, places = "  1 a licence\n", {}
            for words in senses:
                spelt = " ".join(f"{word} 0" for word in words)
                for word in words:
                    lemma = word.partition("(")[0].lower()
                    places.setdefault(lemma, []).append(f"{len(data):08}")
                data += f"{len(data):08} 00 {kind[0]} {len(words):02x} {spelt} 000 | meaning\n"
            lines = [
                f"{word} {kind[0]} {len(at)} 1 @ {len(at)} 0 {' '.join(at)}  "
                for word, at in places.items()
            ]
            (tmp_path / f"data.{kind}").write_text(data)
            (tmp_path / f"index.{kind}").write_text("\n".join(["  1 a licence", *lines, ""]))
            (tmp_path / f"{kind}.exc").write_text(IRREGULAR[kind])
        return tmp_path

    @pytest.mark.parametrize(
        ("word", "synonyms"),
        [
            ("film", ("movie", "shoot", "take")),
            ("Film", ("film", "movie", "shoot", "take")),
            ("filming", ("film", "shoot", "take")),
            ("films", ("film", "movie", "shoot", "take")),
            ("geese", ("goose",)),
            ("went", ("go", "travel")),
            ("better", ("good", "Goodly")),
            ("well", ("fit", "good")),
            ("motion_picture", ()),
            ("plot", ()),
        ],
    )
    def test_words_of_the_same_meaning(self, folder, word, synonyms):
        wordnet = load_neighbours(folder)
        assert wordnet.nearest(word, 99) == synonyms
        assert wordnet.nearest(word, 1) == synonyms[:1]
        assert wordnet.similarity(word, "film") is None

    def test_from_nltks_data(self, folder, tmp_path_factory, monkeypatch):
        data = tmp_path_factory.mktemp("nltk")
        (data / "corpora").mkdir()
        monkeypatch.setenv("NLTK_DATA", str(data))
        folder.rename(data / "corpora" / "wordnet")
        described = load_neighbours("wordnet").description()
        assert described["kind"] == described["name"] == "wordnet" and described["words"] == 11
        (data / "corpora" / "wordnet" / "data.adv").unlink()
        with pytest.raises(DataError, match=r"it has no data.adv"):
            load_neighbours("wordnet")

    @pytest.mark.parametrize(
        ("word", "synonyms"),
        [
            ("films", ("movie", "film", "picture", "pic", "flick", "cinema", "celluloid")),
            ("happiest", ("happy", "felicitous", "glad", "well-chosen")),
            ("went", ("travel", "go", "move", "locomote", "proceed", "depart", "become")),
            ("zzz", ()),
        ],
    )
    def test_the_one_that_comes_with_ranmask(self, word, synonyms):
        wordnet = load_neighbours("wordnet")
        assert wordnet.description()["words"] == 83118
        assert wordnet.nearest(word, 7) == synonyms

    def test_it_is_packed_as_the_tool_packs_a_folder(self, folder, monkeypatch):
        own = load_neighbours(folder)
        (folder / "packed.json.gz").write_bytes(packed(own))
        monkeypatch.setattr(neighbours, "WORDNET_FILE", folder / "packed.json.gz")
        again = load_neighbours("wordnet")
        words = {word for found in own.meanings.values() for word in found.senses}
        assert len(words) == again.description()["words"]
        for word in (*words, "films", "filming", "geese", "went", "better", "Film"):
            assert again.nearest(word, 99) == own.nearest(word, 99), word

    def test_damaged(self, folder):
        (folder / "index.adv").write_text("well\n")
        with pytest.raises(DataError, match="is not an index of WordNet: 'well'"):
            load_neighbours(folder)
        (folder / "data.adv").unlink()
        with pytest.raises(DataError, match=r"it has no data.adv"):
            load_neighbours(folder)
