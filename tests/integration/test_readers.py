"""`benchmarks.readers`, by which the figures beside encoders were made: all of it, tiny."""

import random
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny_models
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import finetuning, reader_rows, readers

from ranmask.certificates.families import Family
from ranmask.certificates.pyramid import costs_and_margins
from ranmask.certificates.readings import SCALE, read_scores, segment_borders
from ranmask.certificates.votes import Votes

WORDS = [word for word in tiny_models.KNOWN_WORDS if len(word) > 1]


def written(path, rows):
    path.parent.mkdir(exist_ok=True)
    texts, labels = zip(*rows, strict=True)
    pq.write_table(pa.table({"text": texts, "label": labels}), path)


def drawn(count, classes, seed, words=(2, 24)):
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        text = " ".join(draw.choices(WORDS, k=draw.randint(*words)))
        rows.append((f"{text} {seed}{number} .", draw.randrange(classes)))
    return rows


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """The folder that ``prepare`` writes."""
    data, output = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("work")
    agnews = drawn(30, 4, 1)
    written(data / "agnews" / "test.parquet", agnews[:6])
    written(data / "agnews" / "train_subset.parquet", agnews[4:])  # two of the test part
    written(data / "agnews_extra" / "train.parquet", drawn(6, 4, 2))
    written(data / "imdb" / "train.parquet", drawn(26, 2, 3))
    written(data / "imdb" / "test.parquet", [*drawn(5, 2, 4), ("good film", 1)])
    sentences = drawn(20, 2, 5)
    written(data / "sst2" / "train.parquet", sentences)
    written(data / "sst2" / "dev.parquet", drawn(4, 2, 6))
    written(data / "sst2" / "test.parquet", drawn(5, 2, 7))
    halves = [(" ".join(text.split()[1:]), label) for text, label in sentences]
    written(data / "sst2_glue" / "train.parquet", [*halves, ("from nowhere", 0)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader_rows, "HELD_OUT", {"agnews": 5, "imdb": 4})
        readers.main(["prepare", "--data", str(data), "--output", str(output)])
    return output


@pytest.fixture(scope="module")
def encoder(one_thread, tmp_path_factory):
    """The folder of an encoder without a head."""
    folder = tmp_path_factory.mktemp("encoders") / "tiny"
    model, tokenizer = tiny_models.untrained_bert()
    model.base_model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def read(work, encoder, corpus, kind, *more):
    given = ("--corpus", corpus, "--kind", kind, "--encoder", encoder, "--work", str(work))
    readers.main(["read", *given, *more])
    with np.load(work / f"{corpus}-{kind}.npz", allow_pickle=False) as found:
        return {name: found[name] for name in found.files if name != "run"}


@pytest.fixture
def copied(work, tmp_path):
    """A folder with the same rows, and no answers."""
    for corpus in readers.SETTINGS:
        (tmp_path / f"{corpus}.json.xz").write_bytes((work / f"{corpus}.json.xz").read_bytes())
    return tmp_path


class TestRows:
    def test_parts_share_no_text(self, work):
        for corpus, train in (("agnews", 25), ("imdb", 22)):
            rows = reader_rows.prepared(work, corpus, None)
            assert len(rows["train"]) == train
            parts = [set(map(finetuning.letters, rows[part])) for part in ("train", "val", "test")]
            assert len(set.union(*parts)) == sum(map(len, parts))
            assert len(rows["folds"]) == len(rows["train_labels"]) == train

    def test_a_phrase_is_in_the_fold_of_its_sentence(self, work):
        rows = reader_rows.prepared(work, "sst2", None)
        fold = dict(zip(rows["train"], rows["folds"], strict=True))
        sentences = [t for t, one in zip(rows["train"], rows["phrase"], strict=True) if not one]
        assert len(sentences) == 20
        assert set(rows["folds"]) == {0, 1, 2}
        for sentence in sentences:
            assert fold[" ".join(sentence.split()[1:])] == fold[sentence]

    def test_sentences_come_of_training_texts(self):
        reviews = [
            'It was good. "A very fine film!" he said.<br /><br />Not bad at all',
            "a b. c d",
        ]
        found = reader_rows.sentences_of([*reviews, *reviews])
        assert sorted(found) == ['"A very fine film!', "It was good.", "Not bad at all"]

    def test_no_file(self, tmp_path):
        with pytest.raises(SystemExit, match="write it with prepare"):
            read(tmp_path, "nowhere", "imdb", "whole")


class TestOutOfFold:
    @pytest.mark.parametrize("kind", ["whole", "segments"])
    def test_no_model_answers_for_what_it_was_trained_on(self, copied, encoder, monkeypatch, kind):
        fitted, read_levels, taught, asked = readers.fitted_to, readers.read_levels, [], []

        def fit(encoder, documents, targets, rows, **how):
            shown = set()

            def show(document, draw):
                shown.add(id(document))
                return how["show"](document, draw)

            model = fitted(encoder, documents, targets, rows, **how | {"show": show})
            assert shown == {id(documents[row]) for row in rows}
            model.shown = shown
            taught.append((len(rows), how["seed"]))
            return model

        def ask(encoder, model, documents, levels):
            assert model.shown.isdisjoint(map(id, documents))
            asked.append(len(documents))
            return read_levels(encoder, model, documents, levels)

        monkeypatch.setattr(readers, "fitted_to", fit)
        monkeypatch.setattr(readers, "read_levels", ask)
        said = read(copied, encoder, "imdb", kind)
        nodes = 1 if kind == "whole" else 31
        shapes = {name: array.shape for name, array in said.items()}
        assert shapes == {"val": (4, nodes, 2), "test": (6, nodes, 2), "oof": (22, nodes, 2)}
        assert [seed for _, seed in taught] == [0, 1, 2, 3]
        assert [rows for rows, _ in taught] == [22, *(22 - held for held in asked[2:])]
        assert not np.isnan(said["oof"][:, 0]).any()

    def test_an_interrupted_run_goes_on(self, copied, encoder, monkeypatch):
        fitted, seeds = readers.fitted_to, []

        def fit(*given, **how):
            if how["seed"] == 2 and 2 not in seeds:
                seeds.append(2)
                raise KeyboardInterrupt
            seeds.append(how["seed"])
            return fitted(*given, **how)

        monkeypatch.setattr(readers, "fitted_to", fit)
        with pytest.raises(KeyboardInterrupt):
            read(copied, encoder, "sst2", "whole")
        resumed = read(copied, encoder, "sst2", "whole")
        assert seeds == [0, 1, 2, 2, 3]
        read(copied, encoder, "sst2", "whole")
        assert len(seeds) == 5
        (copied / "sst2-whole.npz").unlink()
        for name, array in read(copied, encoder, "sst2", "whole").items():
            np.testing.assert_array_equal(array, resumed[name])
        with pytest.raises(SystemExit, match="different: rows"):
            read(copied, encoder, "sst2", "whole", "--rows", "9")

    def test_segments_of_no_more_parts_than_words(self):
        document = finetuning.Document(np.arange(3), np.arange(4))
        draw = np.random.default_rng(0)
        shown = {tuple(readers.any_segment(4, document, draw)) for _ in range(99)}
        assert shown == {(0, 1, 2), (0, 1), (2,)}


class TestNodes:
    def test_each_is_read_by_itself(self, encoder):
        one = finetuning.Encoder(encoder, 64, "cpu")
        model = one.model(3).eval()
        texts = ["good film and great acting unbelievably dull", "not bad", "fine"]
        said = readers.read_levels(one, model, one.documents(texts), 3)
        assert said.shape == (3, 7, 3)
        for text, nodes in zip(texts, said, strict=True):
            words = text.split()
            node = iter(nodes)
            for pieces in (1, 2, 4):
                borders = segment_borders(np.array([len(words)]), pieces)[0]
                for first, last in pairwise(borders):
                    alone = one.documents([" ".join(words[first:last])])
                    wanted = finetuning.answers(one, model, [alone[0].tokens])[0]
                    if first == last:
                        wanted = np.full(3, np.nan)
                    np.testing.assert_allclose(next(node), wanted, atol=1e-3)
        assert np.isnan(said).any()


class TestForTheSum:
    def answers(self, words, classes, seed):
        """Random answers to all nodes, in multiples of 1 / SCALE; NaN where a segment is empty."""
        draw = np.random.default_rng(seed)
        said = draw.dirichlet(np.full(classes, 0.3), (len(words), 15))
        said = np.round(said * SCALE) / SCALE
        levels = [np.diff(segment_borders(words, 2**level)) == 0 for level in range(4)]
        said[np.concatenate(levels, axis=1)] = np.nan
        return said, levels[-1]

    def certified(self, said, words, labels, weights):
        """Costs of words and margins, by ranmask: of the segments alone, copies say nothing."""
        nothing = np.zeros(words.sum(), dtype=np.int64)
        points = np.zeros((words.sum(), said.shape[2]), dtype=np.int64)
        read = np.repeat(np.array(weights) > 0, [1, 2, 4, 8])
        votes = Votes(
            *(said.shape[2], words, nothing, nothing.astype(bool), points, nothing, 0, 0),
            readings=read_scores(said[:, read], weights),
        )
        families = [Family("all", int(own), np.arange(own)[:, None]) for own in words]
        costs, margins = costs_and_margins(votes, families, labels)
        return np.split(costs / SCALE, np.cumsum(words)[:-1], axis=1), margins / SCALE

    @pytest.mark.parametrize("classes", [2, 4])
    @pytest.mark.parametrize("weights", [(0, 1, 2, 0.5), (0, 0, 1, 1), (0, 1, 0, 0)])
    def test_costs_are_those_of_the_certificate(self, classes, weights):
        words = np.array([1, 2, 3, 5, 7, 8, 9, 20, 31] * 4)
        said, empty = self.answers(words, classes, seed=classes)
        labels = np.random.default_rng(1).integers(0, classes, len(words))
        by_text, margins = self.certified(said, words, labels, weights)
        known = torch.tensor(np.nan_to_num(said))
        given = [known[:, 2**level - 1 : 2 ** (level + 1) - 1] for level in range(4)]
        leads = [readers.leads_of(level, torch.tensor(labels)) for level in given]
        found = readers.costs_of(leads, torch.tensor(empty), weights, 6).numpy()
        for text, costs in enumerate(by_text):
            order = [(labels[text] + step) % classes for step in range(1, classes)]
            rivals = np.argsort(order)  # ranmask has them in their own order
            dearest = -np.sort(-costs, axis=1)[:, :6]
            wanted = np.cumsum(np.pad(dearest, ((0, 0), (0, 6 - dearest.shape[1]))), axis=1)
            np.testing.assert_allclose(found[text, rivals], wanted, atol=1e-5)
            lead = sum(w * one[text].sum(1) for w, one in zip(weights, leads, strict=True))
            np.testing.assert_allclose(lead[rivals], margins[:, text], atol=1e-5)

    def test_the_loss_is_what_is_wanting(self):
        """A sharp one is what the lead falls short of cost and reserve, by the worst rival."""
        words = np.array([8, 9, 20, 31, 40, 64] * 8)
        said, empty = self.answers(words, 3, seed=5)
        labels = said.sum(axis=1).argmax(axis=1)
        agreed = np.linspace(0, 1, len(words))[:, None, None]
        said = (1 - agreed) * said + agreed * np.eye(3)[labels][:, None]
        weights = (0, 0, 0.5, 2)
        by_text, margins = self.certified(said, words, labels, weights)
        how = readers.SETTINGS["agnews"].sum
        how = replace(how, weights=weights, reserve=0.25, temperature=1e-4, words=(1, 3))
        known = torch.tensor(said)
        given = [known[:, 2**level - 1 : 2 ** (level + 1) - 1] for level in range(4)]
        found = readers.certified_loss(given, torch.tensor(empty), torch.tensor(labels), how)
        wanted = []
        for text, costs in enumerate(by_text):
            dearest = -np.sort(-costs, axis=1)
            short = [dearest[:, :d].sum(axis=1) + 0.25 - margins[:, text] for d in (1, 3)]
            wanted.append(np.mean([max(0.0, one.max()) for one in short]))
        np.testing.assert_allclose(found, wanted, atol=1e-3)
        assert 0 in np.round(found.numpy(), 3)
        assert found.max() > 1

    @pytest.mark.parametrize("corpus", ["agnews", "imdb", "sst2"])
    def test_the_gradient_reaches_the_model(self, encoder, corpus):
        how = readers.SETTINGS[corpus].sum
        one = finetuning.Encoder(encoder, 64, "cpu")
        model = one.model(2).train()
        documents = one.documents(["good film", "a dull story but the plot is very very good"])
        wanted = torch.tensor([[0.2, 0.8], [1.0, 0.0]])
        loss = readers.loss_for_the_sum(one, model, documents, wanted, how)
        loss.backward()
        assert torch.isfinite(loss)
        assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)
        assert model.classifier.weight.grad.abs().sum() > 0

    def test_all_of_it(self, copied, encoder, monkeypatch):
        with pytest.raises(SystemExit, match="run --kind whole first"):
            read(copied, encoder, "sst2", "sum")
        monkeypatch.setattr(reader_rows, "SURE", 0.5)
        whole = read(copied, encoder, "sst2", "whole")
        assert whole["extra"].shape[1] == 2
        sentences = reader_rows.prepared(copied, "sst2", None)["extra"]
        texts, sure = reader_rows.sure_sentences(sentences, copied / "sst2-whole.npz")
        assert sorted(texts) == sorted(sentences)
        place = sentences.index(texts[3])
        np.testing.assert_array_equal(sure[3], whole["extra"][place])
        taught = []
        fitted = readers.fitted

        def fit(encoder, documents, classes, rows, *more, **how):
            taught.append((len(documents), len(rows)))
            return fitted(encoder, documents, classes, rows, *more, **how)

        monkeypatch.setattr(readers, "fitted", fit)
        said = read(copied, encoder, "sst2", "sum")
        rows = 4 * len(whole["oof"]) + len(sentences)
        assert taught == [(rows, rows)]
        assert {name: array.shape for name, array in said.items()} == {
            "val": (4, 7, 2),
            "test": (5, 7, 2),
        }
        read(copied, encoder, "sst2", "sum")
        assert len(taught) == 1
        assert read(copied, encoder, "agnews", "sum")["test"].shape == (6, 15, 4)

    def test_in_time(self):
        endless, over = readers.timed(None), readers.timed(1e-9)
        assert [endless(step, 100) for step in (3, 53, 100)] == [0.51, 0.5, 0]
        assert over(1, 100) < 0
