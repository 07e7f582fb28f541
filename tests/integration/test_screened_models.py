"""``dtype="screened"`` on real models: the votes of float32; where more is read, a refusal."""

import copy
import dataclasses
import json

import numpy as np
import pytest
import tiny_models
import torch

from commands import run_cli
from ranmask import Blend, SmoothedClassifier
from ranmask.attacks.api import as_victim
from ranmask.attacks.victims import SmoothedVictim
from ranmask.certificates.families import sampled_sets
from ranmask.certificates.votes import count_votes
from ranmask.errors import ClassifierError, ModelError, OptionError
from ranmask.models.base import MaskedCopies
from ranmask.models.huggingface import HuggingFaceClassifier
from ranmask.models.mixed_precision import MixedPrecisionClassifier
from ranmask.models.synonyms import SynonymSets
from ranmask.runs.result_file import read_header
from ranmask.smoothing.synonyms import SynonymSmoothedClassifier
from ranmask.words import Document, document

pytestmark = pytest.mark.usefixtures("one_thread")

TEXTS = [
    "the film was not very good",
    "unbelievable acting but a dull story",
    "a great plot and fine acting",
    "great",
]
TABLE = {"good": ["fine", "great"], "film": ["story"], "dull": ["awful", "bad"]}


def last_layer(model):
    *_, last = (module for module in model.modules() if isinstance(module, torch.nn.Linear))
    return last


def calm(model, tokenizer):
    """Smaller weights inside: rounding is not blown up, and most votes are clear."""
    model = copy.deepcopy(model)
    words = tokenizer(list(tiny_models.KNOWN_WORDS), return_tensors="pt", padding=True)
    with torch.no_grad():
        for name, weight in model.base_model.encoder.named_parameters():
            if name.endswith(".weight") and weight.dim() == 2:
                weight *= 0.3
        last_layer(model).bias -= model(**words).logits.mean(dim=0)
    return model


def nearly_tied(model, tokenizer):
    """Two classes differ by about as much as rounding does, and one of them often wins."""
    model = calm(model, tokenizer)
    with torch.no_grad():
        last = last_layer(model)
        last.weight[1] = last.weight[0] + 2e-5 * torch.linspace(1, -1, last.in_features)
        last.bias[1] = last.bias[0]
    return model


def copies_of_many_lengths(base):
    random = np.random.default_rng(0)
    vocabulary = [*tiny_models.KNOWN_WORDS, "unbelievable", "rebuilding", "x-ray"]
    copies = []
    for length in (2, 5, 12, 30, 80):
        text = Document(tuple(random.choice(vocabulary, size=length).tolist()))
        read = base.words_read(text)
        kept = [sampled_sets(read, min(keep, read), 150, keep) for keep in (1, 2, 4)]
        copies += [MaskedCopies(text, read, sets) for sets in kept]
    return copies


def leads(rows):
    top_two = np.sort(rows, axis=1)[:, -2:]
    return top_two[:, 1] - top_two[:, 0]


@pytest.fixture(scope="module")
def screened_bert(classifier):
    return MixedPrecisionClassifier(classifier("bert"))


def load(folder, **options):
    return SmoothedClassifier.from_pretrained(str(folder), **{"keep": 2, **options})


class TestVotes:
    @pytest.mark.parametrize(
        ("architecture", "made"), [("bert", calm), ("bert", nearly_tied), ("roberta", calm)]
    )
    def test_are_those_of_single_precision(self, architecture, made):
        model, tokenizer = getattr(tiny_models, architecture)()
        exact = HuggingFaceClassifier(made(model, tokenizer), tokenizer, hide="drop")
        screened = MixedPrecisionClassifier(exact)
        copies = copies_of_many_lengths(exact)
        wanted = np.concatenate(exact.score(copies))
        found = np.concatenate(screened.score(copies))
        assert 0 < screened.rechecked < len(found) == 2250
        ours, theirs = (
            count_votes(one, "vote", "logits", exact.tolerance) for one in (found, wanted)
        )
        assert (ours.best == theirs.best).all()
        coarse = np.concatenate(screened.fast.score(copies)).argmax(axis=1)
        assert (coarse != theirs.best).any(), "half precision alone would have done"
        assert made is not nearly_tied or screened.rechecked > 100

    def test_of_random_copies(self, screened_bert):
        exact = screened_bert.exact
        drawn = [SynonymSets(TABLE).draw(document(text), 40, 0) for text in TEXTS]
        for found, wanted in zip(
            screened_bert.score_drawn(drawn), exact.score_drawn(drawn), strict=True
        ):
            sure = leads(wanted) > exact.tolerance
            assert len(found) == len(wanted)
            assert (found.argmax(axis=1) == wanted.argmax(axis=1))[sure].all()

    def test_of_pairs(self, classifier, screened_bert):
        pairs = [("a dull story", text) for text in TEXTS]
        wanted = SmoothedClassifier(classifier("bert"), keep=2).certify(pairs)
        assert same_but_assumes(SmoothedClassifier(screened_bert, keep=2).certify(pairs), wanted)

    def test_a_model_that_overflows_a_little(self):
        """Where half precision has no number, single precision decides."""
        model, tokenizer = tiny_models.bert()
        model = copy.deepcopy(model)
        with torch.no_grad():
            # One word in many is too large for float16 somewhere on its way.
            model.bert.embeddings.word_embeddings.weight[tokenizer.vocab["awful"]] = 1e5
        exact = HuggingFaceClassifier(model, tokenizer)
        screened = MixedPrecisionClassifier(exact)
        texts = ["awful film", "a good film", "awful awful acting"]
        with pytest.raises(ClassifierError, match="not a finite number"):
            SmoothedClassifier(screened.fast, keep=2, tolerance=0.1).certify(texts)
        wanted = SmoothedClassifier(exact, keep=2).certify(texts)
        assert same_but_assumes(SmoothedClassifier(screened, keep=2).certify(texts), wanted)

    def test_a_model_that_always_overflows_is_refused(self):
        model, tokenizer = tiny_models.bert()
        model = copy.deepcopy(model)
        with torch.no_grad():
            model.classifier.weight *= 1e6
        screened = MixedPrecisionClassifier(HuggingFaceClassifier(model, tokenizer))
        with pytest.raises(ModelError, match="use dtype='float32'"):
            SmoothedClassifier(screened, keep=2).certify(TEXTS)


def same_but_assumes(found, wanted):
    """Certificates of the same, and found ones name what screening rests on besides."""
    extra = [one.assumes[-1] for one in found]
    assert all("fewer bits move no difference" in one for one in extra)
    return [dataclasses.replace(one, assumes=one.assumes[:-1]) for one in found] == wanted


class TestLoading:
    def test_certifies_as_float32_does(self, model_folder):
        loaded = load(model_folder, dtype="screened")
        assert isinstance(loaded.base, MixedPrecisionClassifier)
        dtypes = (loaded.base.exact.model.dtype, loaded.base.fast.model.dtype)
        assert dtypes == (torch.float32, torch.float16)
        assert same_but_assumes(loaded.certify(TEXTS), load(model_folder).certify(TEXTS))
        assert loaded.base.rechecked > 0

    def test_the_record_names_it_and_does_not_vary(self, model_folder):
        loaded = load(model_folder, dtype="screened").base
        before = loaded.description()
        assert before == {**load(model_folder).base.description(), "dtype": "screened"}
        loaded.score([MaskedCopies(document(TEXTS[0]), 6, sampled_sets(6, 2, 5, 0))])
        assert loaded.description() == before

    def test_hides_as_asked(self, model_folder):
        loaded = load(model_folder, dtype="screened", hide="drop")
        assert loaded.base.fast.encoder.hide == loaded.base.encoder.hide == "drop"
        again = SmoothedClassifier(loaded.base, keep=1, hide="mask").base
        assert isinstance(again, MixedPrecisionClassifier) and again.votes_only
        assert (again.exact.encoder.hide, again.fast.encoder.hide) == ("mask", "mask")
        assert again.fast.dtype == "float16" and again.outputs == "logits"

    def test_a_saved_one_is_the_single_precision_model(self, model_folder, tmp_path):
        loaded = load(model_folder, dtype="screened")
        loaded.save_pretrained(str(tmp_path))
        again = SmoothedClassifier.from_pretrained(str(tmp_path))
        assert again.base.description()["dtype"] == "float32"
        assert again.base.description()["sha256"] == loaded.base.description()["sha256"]

    def test_an_unknown_dtype(self, model_folder):
        with pytest.raises(OptionError, match="float32, bfloat16, float16, screened; not 'half'"):
            load(model_folder, dtype="half")


class TestRefused:
    """Only votes are right: whatever reads scores is told to use float32."""

    @pytest.mark.parametrize("ensemble", ["score", "logit"])
    def test_ensembles_of_scores(self, screened_bert, ensemble):
        with pytest.raises(OptionError, match=rf"ensemble='{ensemble}'.*use dtype='float32'"):
            SmoothedClassifier(screened_bert, keep=2, ensemble=ensemble)
        with pytest.raises(OptionError, match=rf"ensemble='{ensemble}'.*use dtype='float32'"):
            SynonymSmoothedClassifier(screened_bert, SynonymSets(TABLE), ensemble=ensemble)

    def test_blends(self, classifier, screened_bert):
        with pytest.raises(OptionError, match=r"a blend needs scores.*use dtype='float32'"):
            Blend([classifier("bert"), screened_bert])

    def test_a_victim_that_is_not_smoothed(self, screened_bert):
        with pytest.raises(OptionError, match=r"not smoothed needs scores.*use dtype='float32'"):
            as_victim(screened_bert)

    def test_another_tolerance(self, screened_bert):
        """What was not computed again may be closer than a larger one in single precision."""
        with pytest.raises(OptionError, match=r"tolerance=0\.5 cannot be given.*dtype='screened'"):
            SmoothedClassifier(screened_bert, keep=2, tolerance=0.5)

    def test_not_a_smoothed_victim(self, screened_bert):
        assert isinstance(as_victim(SmoothedClassifier(screened_bert, keep=2)), SmoothedVictim)


class TestCommands:
    def run(self, command, folder, *arguments):
        given = [command, "--model", str(folder), "--keep", "2", "--device", "cpu", *arguments]
        return run_cli(*given)

    def test_certify_gives_the_lines_of_float32(self, model_folder):
        wanted = self.run("certify", model_folder, "--json", *TEXTS)
        found = self.run("certify", model_folder, "--json", "--dtype", "screened", *TEXTS)
        lines = [json.loads(line) for line in found.stdout.splitlines()]
        assert found.exit_code == 0 and len(lines) == len(TEXTS)
        for line, other in zip(lines, map(json.loads, wanted.stdout.splitlines()), strict=True):
            assert "fewer bits move no difference" in line["assumes"].pop()
            assert line == other

    def test_the_record_of_a_run_names_it(self, model_folder, tmp_path):
        (tmp_path / "in.txt").write_text("\n".join(TEXTS))
        output = tmp_path / "out.jsonl"
        given = ["--input", str(tmp_path / "in.txt"), "--output", str(output)]
        done = self.run("certify", model_folder, "--dtype", "screened", *given)
        assert done.exit_code == 0, done.output
        record = read_header(tmp_path / "out.jsonl")
        assert '"dtype": "screened"' in json.dumps(record)
        again = self.run("certify", model_folder, "--dtype", "screened", *given)
        assert again.exit_code == 0, "another run measured something else"

    @pytest.mark.parametrize("ensemble", ["score", "logit"])
    def test_ensembles_of_scores_are_refused(self, model_folder, ensemble):
        options = ["--dtype", "screened", "--ensemble", ensemble, "good film"]
        done = self.run("certify", model_folder, *options)
        assert done.exit_code == 2
        assert "use --dtype float32" in " ".join(done.output.split())

    @pytest.mark.parametrize("ensemble", ["score", "vote,logit"])
    def test_tuning_refuses_ensembles_of_scores(self, model_folder, tmp_path, ensemble):
        rows = "\n".join(f"{text},{place % 2}" for place, text in enumerate(TEXTS))
        (tmp_path / "in.csv").write_text(f"text,label\n{rows}\n")
        given = ["--data", str(tmp_path / "in.csv"), "--label-column", "label"]
        done = self.run("tune", model_folder, *given, "--dtype", "screened", "--ensemble", ensemble)
        assert done.exit_code == 2, done.output
        assert "use --dtype float32" in " ".join(done.output.split())
