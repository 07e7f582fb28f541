"""The Hugging Face path against slow, plain ways of doing the same, on real (tiny) models."""

import contextlib
import copy
import itertools
import threading

import numpy as np
import pytest
import tiny_models
import torch

from ranmask import SmoothedClassifier
from ranmask.certificates.families import all_sets, sampled_sets
from ranmask.errors import ClassifierError, ModelError, OptionError, RanmaskError
from ranmask.models.base import BaseClassifier, MaskedCopies
from ranmask.models.batching import batches
from ranmask.models.blend import Blend
from ranmask.models.encoding import CHARACTERS_PER_WORD, TOKENS_PER_WORD
from ranmask.models.huggingface import HuggingFaceClassifier
from ranmask.models.mixed_precision import MixedPrecisionClassifier
from ranmask.models.numerics import Probes
from ranmask.models.readers import ModelReader
from ranmask.words import Document

pytestmark = pytest.mark.usefixtures("one_thread")

LONGEST = tiny_models.LONGEST
ROUNDING = 1e-4  # logits are of size 10, and their last bit is 1e-6

TAKES_POSITIONS = ("bert", "roberta", "distilbert", "electra", "albert", "mpnet")
RELATIVE_POSITIONS = ("deberta", "modernbert")

WORDS = ("The", "film", "was", "unbelievable,", "good")
PREMISE = "A dull story - not good"


def copies_of(base, words, kept, premise=None):
    document = Document(tuple(words), premise)
    return MaskedCopies(document, base.words_read(document), kept)


def logits_of(base, words, kept, premise=None):
    [logits] = base.score([copies_of(base, words, kept, premise)])
    return logits


def run(model, inputs):
    with torch.inference_mode():
        return model(**inputs).logits.double().numpy()


def logits_of_masked_strings(base, words, kept, premise=None, truncation="only_first"):
    """The plain way: write mask tokens into the text and tokenise all of it anew."""
    mask = base.tokenizer.mask_token
    texts = [
        " ".join(word if place in shown else mask for place, word in enumerate(words))
        for shown in kept.tolist()
    ]
    pairs = [texts] if premise is None else [[premise] * len(texts), texts]
    inputs = base.tokenizer(
        *pairs, truncation=truncation, max_length=LONGEST, padding=True, return_tensors="pt"
    )
    return run(base.model, inputs)


def shuffled_scores(base, copies, random):
    """Scores in the order of ``copies``, computed in another one."""
    order = random.permutation(len(copies))
    rows = [random.permutation(len(copies[index])) for index in order]
    shuffled = base.score(
        [
            MaskedCopies(copies[index].document, copies[index].words_read, copies[index].kept[row])
            for index, row in zip(order, rows, strict=True)
        ]
    )
    scores = [None] * len(copies)
    for index, row, part in zip(order, rows, shuffled, strict=True):
        scores[index] = np.empty_like(part)
        scores[index][row] = part
    return np.concatenate(scores)


@pytest.mark.parametrize("name", ["bert", "roberta"])
class TestMaskedText:
    """``hide="mask"`` equals masking the string and tokenising it."""

    @pytest.mark.parametrize("premise", [None, PREMISE], ids=["single", "pair"])
    @pytest.mark.parametrize("keep", [1, 2, 3, 4, 5])
    def test_short_texts(self, classifier, name, premise, keep):
        base, kept = classifier(name), all_sets(len(WORDS), keep)
        fast = logits_of(base, WORDS, kept, premise)
        plain = logits_of_masked_strings(base, WORDS, kept, premise)
        assert np.abs(fast - plain).max() < ROUNDING

    def test_texts_longer_than_the_model_takes(self, classifier, name):
        base, words = classifier(name), WORDS * 20
        kept = sampled_sets(base.words_read(Document(words)), 9, 40, seed=0)
        fast = logits_of(base, words, kept)
        plain = logits_of_masked_strings(base, words, kept)
        assert np.abs(fast - plain).max() < ROUNDING

    def test_pairs_longer_than_the_model_takes(self, classifier, name):
        """The premise fills the half of the row that is its own."""
        base, words = classifier(name), WORDS * 20
        premise = " ".join(["good"] * (LONGEST // 2))
        kept = sampled_sets(base.words_read(Document(words, premise)), 5, 40, seed=0)
        fast = logits_of(base, words, kept, premise)
        plain = logits_of_masked_strings(base, words, kept, premise, "only_second")
        assert np.abs(fast - plain).max() < ROUNDING

    def test_a_premise_is_cut_at_half_the_row(self, classifier, name):
        """Where the tokenizer would cut depends on the hypothesis, so it is not asked."""
        base, kept = classifier(name), all_sets(len(WORDS), 2)
        long, cut = (" ".join(["good"] * count) for count in (LONGEST, LONGEST // 2))
        fast = logits_of(base, WORDS, kept, long)
        assert np.abs(fast - logits_of_masked_strings(base, WORDS, kept, cut)).max() < ROUNDING

    def test_a_hypothesis_is_cut_at_the_other_half(self, classifier, name):
        """Also after a short premise, where the tokenizer would read on."""
        base, words = classifier(name), WORDS * 20
        read = base.words_read(Document(words, PREMISE))
        assert LONGEST // 2 - 4 <= read <= LONGEST // 2
        kept = all_sets(read, 1)
        fast = logits_of(base, words, kept, PREMISE)
        plain = logits_of_masked_strings(base, words[:read], kept, PREMISE)
        assert np.abs(fast - plain).max() < ROUNDING

    def test_a_word_of_many_tokens_is_cut_where_the_tokenizer_would_read_on(self, classifier, name):
        """So that one shown word cannot push the others out of the row."""
        base, kept = classifier(name), np.array([[0, 1]], dtype=np.int32)
        words = ["!" * 40, "good", "film"]
        fast = logits_of(base, words, kept)
        cut = ["!" * TOKENS_PER_WORD, "good", "film"]
        assert np.abs(fast - logits_of_masked_strings(base, cut, kept)).max() < ROUNDING
        assert np.abs(fast - logits_of_masked_strings(base, words, kept)).max() > 0.01

    def test_a_word_that_spells_a_special_token_is_read_as_characters(self, classifier, name):
        """Where the tokenizer would take ``[SEP]`` for the end of the text."""
        base, tokenizer = classifier(name), classifier(name).tokenizer
        for token in tokenizer.all_special_tokens:
            rows = base.encoder.rows(copies_of(base, [token, "good"], all_sets(2, 2)))
            [ids] = rows.ids.tolist()
            frame = {tokenizer.cls_token_id, tokenizer.sep_token_id}
            assert not set(ids[1:-1]) & (set(tokenizer.all_special_ids) - {tokenizer.unk_token_id})
            assert {ids[0], ids[-1]} == frame
            assert len(ids) > 4


def test_special_tokens_that_a_unigram_vocabulary_holds_are_read_as_characters(classifier):
    base = classifier("albert")
    special = set(base.tokenizer.all_special_ids) - {base.tokenizer.unk_token_id}
    for token in base.tokenizer.all_special_tokens:
        rows = base.encoder.rows(copies_of(base, [token, "good"], all_sets(2, 2)))
        assert not set(rows.ids[0, 1:-1].tolist()) & special, token


def test_a_shown_word_is_read_up_to_a_number_of_characters(classifier):
    base = classifier("roberta")
    long = copies_of(base, ["ab" * CHARACTERS_PER_WORD, "good"], all_sets(2, 2))
    rows = base.encoder.rows(long)
    assert rows.lengths.tolist() == [1 + TOKENS_PER_WORD + 1 + 1]


@pytest.mark.parametrize("name", TAKES_POSITIONS)
class TestDropping:
    """``hide="drop"`` equals the masked row with the hidden words out of attention's sight."""

    def reference(self, base, copies):
        rows = base.encoder.rows(copies)
        columns = np.arange(rows.ids.shape[1])
        shown = (columns < rows.lengths[:, None]) & (rows.ids != base.encoder.mask_id)
        inputs = {
            "input_ids": torch.from_numpy(rows.ids),
            "attention_mask": torch.from_numpy(shown.astype(np.int64)),
        }
        if base.model.config.model_type != "distilbert":
            types = np.broadcast_to(
                (columns >= rows.first_body_place) * rows.body_type, shown.shape
            )
            inputs["token_type_ids"] = torch.from_numpy(types.copy())
        return run(base.model, inputs)

    @pytest.mark.parametrize("premise", [None, PREMISE], ids=["single", "pair"])
    def test_short_texts(self, classifier, name, premise):
        for keep in (1, 2, 4):
            kept = all_sets(len(WORDS), keep)
            dropped = logits_of(classifier(name, "drop"), WORDS, kept, premise)
            masked = copies_of(classifier(name), WORDS, kept, premise)
            assert np.abs(dropped - self.reference(classifier(name), masked)).max() < ROUNDING
            assert np.abs(dropped - logits_of(classifier(name), WORDS, kept, premise)).max() > 0.01

    def test_texts_longer_than_the_model_takes(self, classifier, name):
        words = WORDS * 20
        kept = sampled_sets(classifier(name).words_read(Document(words)), 9, 40, seed=0)
        dropped = logits_of(classifier(name, "drop"), words, kept)
        masked = self.reference(classifier(name), copies_of(classifier(name), words, kept))
        assert np.abs(dropped - masked).max() < ROUNDING

    def test_rows_hold_the_shown_words_alone(self, classifier, name):
        base = classifier(name, "drop")
        rows = base.encoder.rows(copies_of(base, ["good"] * 40, all_sets(40, 1)))
        assert set(rows.lengths.tolist()) == {3}


def test_threads_that_share_a_model_with_relative_positions():
    """One thread computes other rows in the midst of another's forward pass."""
    base = HuggingFaceClassifier(*copy.deepcopy(tiny_models.mpnet()), hide="drop")
    kept = [np.array([[0, 4]]), np.array([[2, 3]])]
    alone = [logits_of(base, WORDS, some) for some in kept]
    seen = []

    def meanwhile(*_):
        if not seen:  # for the first pass alone
            seen.append(None)
            other = threading.Thread(target=lambda: seen.append(logits_of(base, WORDS, kept[1])))
            other.start()
            other.join()

    hook = base.model.mpnet.encoder.register_forward_pre_hook(meanwhile)
    found = logits_of(base, WORDS, kept[0])
    hook.remove()
    assert np.array_equal(found, alone[0]) and np.array_equal(seen[1], alone[1])


def test_a_model_that_follows_positions_is_called_as_before(tmp_path):
    model, tokenizer = copy.deepcopy(tiny_models.mpnet())
    ids = torch.tensor([[0, 9, 12, 7, 2]])
    given = ids, torch.ones_like(ids), torch.arange(2, 7)[None]
    before = [model.mpnet(*given).last_hidden_state, model.mpnet(ids).last_hidden_state]
    HuggingFaceClassifier(model, tokenizer, hide="drop")
    after = [model.mpnet(*given).last_hidden_state, model.mpnet(ids).last_hidden_state]
    assert all(torch.allclose(*pair, atol=1e-5) for pair in zip(before, after, strict=True))
    model.mpnet.save_pretrained(tmp_path)
    assert '"MPNetModel"' in (tmp_path / "config.json").read_text()


class TestDroppingIsRefused:
    @pytest.mark.parametrize("name", RELATIVE_POSITIONS)
    def test_where_positions_are_relative(self, classifier, name):
        with pytest.raises(ModelError, match=r"hide='drop' is not exact for .*hide='mask'"):
            classifier(name, "drop")

    @pytest.mark.parametrize("name", RELATIVE_POSITIONS)
    def test_where_masking_works(self, classifier, name):
        [certificate] = SmoothedClassifier(classifier(name), keep=1).certify([" ".join(WORDS)])
        assert certificate.masks == len(WORDS)

    @pytest.mark.parametrize("name", RELATIVE_POSITIONS)
    def test_when_a_loaded_classifier_is_configured_anew(self, classifier, name):
        with pytest.raises(ModelError):
            SmoothedClassifier(classifier(name), keep=1, hide="drop")


@pytest.mark.parametrize("hide", ["mask", "drop"])
@pytest.mark.parametrize("name", [*TAKES_POSITIONS, *RELATIVE_POSITIONS])
def test_the_checks_leave_the_model_as_it_was(name, hide):
    """They run in full precision; buffers that a bf16 model keeps in fp32 must stay there."""
    model, tokenizer = getattr(tiny_models, name)()
    model = copy.deepcopy(model)
    for parameter in model.parameters():
        parameter.data = parameter.data.bfloat16()
    before = {key: value.clone() for key, value in state(model).items()}
    with contextlib.suppress(ModelError):
        HuggingFaceClassifier(model, tokenizer, hide=hide)
    for key, value in state(model).items():
        assert value.dtype == before[key].dtype, key
        assert torch.equal(value, before[key]), key


def state(model):
    """All numbers of a model, also those that are not saved with it."""
    return {k: v.detach() for k, v in [*model.named_parameters(), *model.named_buffers()]}


def sharpened(name, seed):
    """A random model with sharp attention, which makes much of the last bits of its inputs."""
    model, tokenizer = getattr(tiny_models, name)()
    model = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if key.endswith(("query.weight", "key.weight")):
                parameter.copy_(4 * torch.randn(parameter.shape, generator=generator))
            elif parameter.dim() == 2 and "embeddings" not in key:
                parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator))
    return model, tokenizer


class Unsteady(torch.nn.Module):
    """Moves logits of a model with the number of rows, or with a row's place among them."""

    def __init__(self, head, movement):
        super().__init__()
        self.head = head
        self.movement = movement

    def forward(self, rows):
        logits = self.head(rows)
        return logits + self.movement(logits)


def unsteady(movement):
    model, tokenizer = tiny_models.bert()
    model = copy.deepcopy(model)
    model.classifier = Unsteady(model.classifier, movement)
    return HuggingFaceClassifier(model, tokenizer)


class TestSameBits:
    """A copy has the same logits, to the last bit, whatever is computed beside it."""

    def copies(self, base, random):
        vocabulary = [*tiny_models.KNOWN_WORDS, "unbelievable", "rebuilding", "x-ray"]
        copies = []
        for length in (2, 3, 5, 8, 12, 20, 30, 45, 62, 80):
            words = random.choice(vocabulary, size=length).tolist()
            for keep in (1, 2, 4):
                read = base.words_read(Document(tuple(words)))
                kept = sampled_sets(read, min(keep, read), 30, seed=length)
                copies.append(copies_of(base, words, kept))
        return copies

    @pytest.mark.parametrize("hide", ["mask", "drop"])
    @pytest.mark.parametrize("name", ["bert", "roberta", "distilbert"])
    @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
    def test_in_any_company(self, name, hide, dtype):
        random = np.random.default_rng(0)
        model, tokenizer = getattr(tiny_models, name)()
        model = copy.deepcopy(model).to(getattr(torch, dtype))
        base = HuggingFaceClassifier(model, tokenizer, hide=hide)
        copies = self.copies(base, random)
        first = np.concatenate(base.score(copies))
        for batch_tokens in (40, 300, 10**6):
            other = HuggingFaceClassifier(model, tokenizer, hide=hide, batch_tokens=batch_tokens)
            assert np.array_equal(shuffled_scores(other, copies, random), first)
        assert base.tolerance == 0

    @pytest.mark.parametrize("name", ["deberta", "mpnet", "modernbert", "albert", "electra"])
    def test_of_other_architectures(self, name):
        random = np.random.default_rng(1)
        model, tokenizer = getattr(tiny_models, name)()
        base = HuggingFaceClassifier(model, tokenizer)
        copies = self.copies(base, random)[::4]
        first = np.concatenate(base.score(copies))
        other = HuggingFaceClassifier(model, tokenizer, batch_tokens=100)
        assert np.array_equal(shuffled_scores(other, copies, random), first)
        assert base.tolerance == 0

    @pytest.mark.parametrize("seed", range(8))
    def test_of_sharp_attention(self, seed):
        """Where last bits grow: no bound that was measured on a few copies holds for others."""
        random = np.random.default_rng(seed)
        base = HuggingFaceClassifier(*sharpened("bert", seed), hide="mask")
        copies = self.copies(base, random)
        together = np.concatenate(base.score(copies))
        alone = np.concatenate([base.score([one])[0] for one in copies])
        assert np.array_equal(alone, together)
        assert np.array_equal(shuffled_scores(base, copies, random), together)
        assert base.tolerance == 0

    def test_padding_would_move_them(self):
        """So the tests above can fail."""
        base = HuggingFaceClassifier(*sharpened("bert", 1), hide="mask")
        rows = base.encoder.rows_of_all(self.copies(base, np.random.default_rng(1)))
        first = base.score_rows(rows)
        [padded] = batches(rows, tokens=1 << 30, least_rows=1 << 30, pad_id=base.encoder.pad_id)
        moved = np.abs(base.forward(padded) - first[padded.places]).max(axis=1)
        assert moved.max() > 16 * max(np.quantile(moved, 0.9), 2.0**-23)  # a few, and far

    def test_threads_do_not_matter(self):
        base = HuggingFaceClassifier(*sharpened("bert", 1), hide="drop")
        copies = self.copies(base, np.random.default_rng(1))
        found = []
        before = torch.get_num_threads()
        try:
            for threads in (1, 2):
                torch.set_num_threads(threads)
                found.append(np.concatenate(base.score(copies)))
        finally:
            torch.set_num_threads(before)
        assert np.array_equal(*found)

    def test_of_narrow_heads(self):
        """With several threads, attention over 8 columns rounds a row by its place."""
        _, tokenizer = tiny_models.bert()
        config = copy.deepcopy(tiny_models.bert()[0].config)
        config.num_attention_heads, config.hidden_size = 3, 24
        base = HuggingFaceClassifier(type(tiny_models.bert()[0])(config), tokenizer)
        copies = self.copies(base, np.random.default_rng(4))[::6]
        before = torch.get_num_threads()
        try:
            torch.set_num_threads(1)
            base.score(copies)  # nothing moves, and it is found out with other threads again
            torch.set_num_threads(2)
            with pytest.warns(RuntimeWarning, match="one by one"):
                together = np.concatenate(base.score(copies))
            alone = np.concatenate([base.score([one])[0] for one in copies])
        finally:
            torch.set_num_threads(before)
        assert np.array_equal(alone, together)

    def test_certificates_name_it(self, classifier):
        smoothed = SmoothedClassifier(classifier("bert"), keep=1)
        [certificate] = smoothed.certify(["good film"])
        assert any("the same bits in any batch" in line for line in certificate.assumes)

    def test_where_nothing_is_proved_nothing_is_measured(self, classifier, monkeypatch):
        base = classifier("bert")
        copies = self.copies(base, np.random.default_rng(5))[::6]
        scores = np.concatenate(base.score(copies))
        for name in ("steady_rows", "tolerance", "same_everywhere"):
            monkeypatch.setattr(Probes, name, None)
        other = base.unmeasured()
        assert np.allclose(np.concatenate(other.score(copies)), scores, atol=1e-5)
        [certificate] = SmoothedClassifier(other, keep=1).certify(["good film"])
        assert not certificate.guarantee and not certificate.assumes
        assert other.assumes == ()  # nobody looked whether it is steady
        assert base._steady and not other._steady  # nor is it held to what was found of another
        half = base.unmeasured("float16")
        assert half.dtype == "float16" and base.dtype == "float32" and half.tolerance == 0
        assert np.allclose(np.concatenate(half.score(copies)), scores, atol=0.1)  # fewer bits
        assert base.tolerance == 0 and base.proves  # as it was found before
        for same in (other.in_dtype("float16"), copy.deepcopy(other), Blend([base, other])):
            assert not same.proves
            with pytest.raises(OptionError, match=r"unmeasured.*give the model itself"):
                ModelReader(same)
        wrapped = MixedPrecisionClassifier(other, half)
        monkeypatch.setattr(MixedPrecisionClassifier, "difference", 0.5)
        [certificate] = SmoothedClassifier(wrapped, keep=1).certify(["good film"])
        assert not certificate.guarantee and not certificate.certified(0)

    def test_a_model_that_moves_with_the_number_of_rows_is_given_one_number(self):
        base = unsteady(lambda logits: 1e-5 * len(logits))
        copies = self.copies(base, np.random.default_rng(2))
        together = np.concatenate(base.score(copies))
        assert np.array_equal(np.concatenate([base.score([one])[0] for one in copies]), together)
        assert base.tolerance == 0

    def test_one_that_moves_with_the_place_is_computed_row_by_row(self):
        base = unsteady(lambda logits: 1e-5 * (torch.arange(len(logits))[:, None] % 7))
        copies = self.copies(base, np.random.default_rng(3))[::5]
        with pytest.warns(RuntimeWarning, match="one by one"):
            together = np.concatenate(base.score(copies))
        assert np.array_equal(np.concatenate([base.score([one])[0] for one in copies]), together)
        assert base.tolerance == 0

    def test_one_that_moves_of_itself_has_a_tolerance(self):
        generator = torch.Generator().manual_seed(0)
        base = unsteady(lambda logits: 1e-5 * torch.rand(logits.shape, generator=generator))
        assert 1e-5 < base.tolerance < 1e-2
        smoothed = SmoothedClassifier(base, keep=1)
        [certificate] = smoothed.certify(["good film"])
        assert any(f"{smoothed.tolerance / 2:.3g}" in line for line in certificate.assumes)

    def test_a_shape_that_was_never_seen_is_looked_at(self):
        """Steady in every shape that is tried at loading; not in one that a text asks for."""
        base = unsteady(lambda logits: 1e-5 * (len(logits) == 40))
        assert base.tolerance == 0
        words = tuple(tiny_models.KNOWN_WORDS[2:])[:10]
        few, many = (copies_of(base, words, sampled_sets(10, 3, n, seed=1)) for n in (4, 40))
        base.score([few])
        with pytest.raises(ClassifierError, match=r"40 rows of .* tokens have other logits"):
            base.score([many])


class Wobbling(BaseClassifier):
    """A tiny model whose logits move between computations, within a declared tolerance.

    Each logit stays within a quarter of the tolerance of one fixed value, so the difference of
    two logits moves by at most the tolerance from any computation to any other.  ``toward``
    moves every copy as far towards one class as that allows; None moves at random.
    """

    outputs = "logits"
    labels = tiny_models.LABELS

    def __init__(self, inner, tolerance):
        self.inner = inner
        self.toward = None
        self._tolerance = tolerance
        self._random = np.random.default_rng(0)

    @property
    def tolerance(self):
        return self._tolerance

    def configured(self, *, hide=None, mask_token=None):
        raise NotImplementedError

    def score(self, copies):
        reach = 0.249 * self._tolerance  # leaves room for the model's own rounding
        scores = []
        for logits in self.inner.score(copies):
            if self.toward is None:
                push = self._random.choice([-1.0, 1.0], size=logits.shape)
            else:
                push = np.where(np.arange(logits.shape[1]) == self.toward, 1.0, -1.0)
            scores.append(logits + reach * push)
        return scores


def all_texts(vocabulary, length):
    return list(itertools.product(vocabulary, repeat=length))


def distances(texts):
    numbers = {word: index for index, word in enumerate(sorted({w for t in texts for w in t}))}
    table = np.array([[numbers[word] for word in text] for text in texts])
    return (table[:, None, :] != table[None, :, :]).sum(axis=2)


def broken_promises(certificates, labels, apart):
    """Pairs of a certified text and a text within its radius that has another label."""
    radius = np.array([-1 if one.radius is None else one.radius for one in certificates])
    label = np.array([one.label_id for one in certificates])
    return int(((apart <= radius[:, None]) & (labels[None, :] != label[:, None])).sum())


class TestWobblingModels:
    """Worst-case movement towards every class, over all texts of a small vocabulary."""

    TEXTS = all_texts(("awful", "great", "[SEP]"), 5)

    def wobbling(self, classifier, ensemble="vote"):
        """Scores move at once, votes only where they are near-ties."""
        return Wobbling(classifier("roberta", "drop"), 1.0 if ensemble == "vote" else 0.3)

    def promises(self, base, **options):
        """Certify under random movement; label under the worst towards each class."""
        smoothed = SmoothedClassifier(base, keep=1, **options)
        texts = [" ".join(text) for text in self.TEXTS]
        base.toward = None
        certificates = smoothed.certify(texts)
        apart = distances(self.TEXTS)
        broken = 0
        for toward in range(3):
            base.toward = toward
            labels = np.array([one.label_id for one in smoothed.predict(texts)])
            broken += broken_promises(certificates, labels, apart)
        return certificates, broken

    @pytest.mark.parametrize("ensemble", ["vote", "score", "logit"])
    def test_radii_hold(self, classifier, ensemble):
        base = self.wobbling(classifier, ensemble)
        certificates, broken = self.promises(base, ensemble=ensemble)
        assert max(one.radius or 0 for one in certificates) >= 1
        assert broken == 0

    @pytest.mark.parametrize("ensemble", ["vote", "score", "logit"])
    def test_radii_would_not_hold_without_the_tolerance(self, classifier, ensemble):
        """So the test above can fail."""
        base = self.wobbling(classifier, ensemble)
        _, broken = self.promises(base, ensemble=ensemble, tolerance=0.0, recheck=0)
        assert broken > 0

    def test_near_ties_are_counted_as_uncertain(self, classifier):
        base = self.wobbling(classifier)
        base.toward = 0
        smoothed = SmoothedClassifier(base, keep=1)
        seen = 0
        for text in self.TEXTS[::7]:
            top_two = np.sort(logits_of(base, text, all_sets(5, 1)), axis=1)[:, -2:]
            near = int((top_two[:, 1] - top_two[:, 0] <= base.tolerance).sum())
            [certificate] = smoothed.certify([" ".join(text)])
            assert certificate.uncertain == near
            seen += near
        assert seen > 0


VOCABULARIES = {  # chosen so that no case is empty: some radii above 0, several labels
    ("bert", "mask"): ("awful", "x-ray", "story"),
    ("bert", "drop"): ("plot", "believer", "film"),
    ("roberta", "mask"): ("is", "unbelievable", "awful"),
    ("roberta", "drop"): ("[SEP]", "great", "awful"),
    ("mpnet", "drop"): ("is", "unbelievable", "awful"),
    ("gpt2", "mask"): ("good", "great", "awful"),
}


class TestGuarantee:
    """End to end: every substitution of up to ``radius`` words keeps the label."""

    @pytest.mark.parametrize("ensemble", ["vote", "score", "logit"])
    @pytest.mark.parametrize(
        ("name", "hide", "keep", "length"),
        [
            *[("bert", "mask", 1, 5), ("bert", "drop", 1, 5)],
            *[("roberta", "mask", 1, 5), ("roberta", "drop", 1, 5)],
            *[("bert", "mask", 2, 6), ("roberta", "drop", 2, 6), ("gpt2", "mask", 1, 5)],
            ("mpnet", "drop", 1, 5),
        ],
    )
    def test_over_all_texts_of_a_small_vocabulary(
        self, classifier, name, hide, keep, length, ensemble
    ):
        texts = all_texts(VOCABULARIES[name, hide], length)
        smoothed = SmoothedClassifier(classifier(name, hide), keep=keep, ensemble=ensemble)
        joined = [" ".join(text) for text in texts]
        certificates = smoothed.certify(joined)
        # Labels from another call, in another order: other batches.
        order = np.random.default_rng(0).permutation(len(texts))
        labels = np.empty(len(texts), dtype=np.int64)
        labels[order] = [one.label_id for one in smoothed.predict([joined[i] for i in order])]
        assert broken_promises(certificates, labels, distances(texts)) == 0
        assert max(one.radius or 0 for one in certificates) >= 1
        assert broken_promises(certificates, labels, distances(texts) - 1) > 0, "cannot fail"


class TestLongTexts:
    @pytest.mark.parametrize("hide", ["mask", "drop"])
    @pytest.mark.parametrize("name", ["bert", "roberta", "mpnet"])
    def test_of_20000_words_are_read_as_far_as_the_model_reads(self, classifier, name, hide):
        smoothed = SmoothedClassifier(classifier(name, hide), keep=2, masks=50)
        [certificate] = smoothed.certify([" ".join(WORDS * 4000)])
        assert (certificate.words, certificate.words_read) == (20_000, LONGEST - 2)
        assert max(certificate.critical_words, default=0) < LONGEST - 2

    def test_a_hypothesis_of_20000_words(self, classifier):
        smoothed = SmoothedClassifier(classifier("bert"), keep=2, masks=50)
        [certificate] = smoothed.certify([(PREMISE, " ".join(WORDS * 4000))])
        assert (certificate.words, certificate.words_read) == (20_000, LONGEST // 2 - 3)

    def test_words_beyond_the_limit_are_never_shown(self, classifier):
        """Nor do they cost time: only words that are read are tokenised."""
        base = classifier("bert")
        read, unread = ["good"] * (LONGEST - 2), ["awful"] * 100
        kept = all_sets(len(read), 1)
        assert np.array_equal(logits_of(base, read, kept), logits_of(base, [*read, *unread], kept))


def test_a_pair_that_leaves_no_room_for_the_hypothesis_is_a_model_error():
    model, tokenizer = tiny_models.bert()
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.model_max_length = 5
    smoothed = SmoothedClassifier(HuggingFaceClassifier(model, tokenizer), keep=1)
    assert smoothed.certify(["good film was dull"])[0].words_read == 3
    with pytest.raises(ModelError):
        smoothed.certify([("good film", "bad plot")])


def test_a_token_that_the_model_has_no_embedding_for_is_no_bare_crash():
    model, tokenizer = tiny_models.bert()
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.add_tokens(["newtoken"])
    with pytest.raises(RanmaskError):
        SmoothedClassifier(HuggingFaceClassifier(model, tokenizer), keep=1).certify(["newtoken a"])


class TestFirstRowShortcut:
    """The last layer is computed for the row that the head reads, and for no other."""

    @pytest.mark.parametrize("name", ["bert", "roberta", "electra"])
    def test_is_used_and_gives_the_same_logits(self, name, classifier):
        base = classifier(name)
        assert base._fast is not None
        copies = copies_of(base, ["good", "film", "was", "not", "bad"], all_sets(5, 2))
        quick = base.score([copies])[0]
        shortcut, base._fast = base._fast, None
        try:
            plain = base.score([copies])[0]
        finally:
            base._fast = shortcut
        assert np.abs(quick - plain).max() < 1e-4 * np.abs(plain).max()

    @pytest.mark.parametrize("name", ["distilbert", "albert"])
    def test_is_not_used_where_the_structure_is_unknown(self, name, classifier):
        assert classifier(name)._fast is None

    def test_leaves_the_model_alone(self, classifier):
        base = classifier("bert")
        names = {type(layer).__name__ for layer in base.model.bert.encoder.layer}
        assert names == {"BertLayer"}
        weights = base._fast.bert.encoder.layer[0].attention.self.query.weight
        assert weights is base.model.bert.encoder.layer[0].attention.self.query.weight

    def test_is_refused_where_the_head_reads_other_rows(self, classifier):
        """A head that averages all rows would see one row only: the check must notice."""
        base = classifier("bert")
        model = copy.deepcopy(base.model)
        model.bert.pooler.forward = lambda hidden: hidden[:, 1]
        assert HuggingFaceClassifier(model, base.tokenizer)._fast is None


def test_a_retrained_model_is_another_one(classifier):
    """Runs are resumed by this description: the same folder with other weights must show."""
    base = classifier("bert")
    model = copy.deepcopy(base.model)
    same = HuggingFaceClassifier(model, base.tokenizer, source=base.source)
    assert same.description()["sha256"] == base.description()["sha256"]
    with torch.no_grad():
        model.classifier.bias[0] += 1e-3
    other = HuggingFaceClassifier(model, base.tokenizer, source=base.source)
    assert other.description()["sha256"] != base.description()["sha256"]


@pytest.mark.parametrize("hide", ["mask", "drop"])
@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_texts_laid_out_together_have_the_rows_that_they_have_alone(
    classifier, architecture, hide, monkeypatch
):
    """A row must not tell which texts it was laid out with: nor its tokens, nor their places."""
    monkeypatch.setattr("ranmask.models.encoding._ROWS_LAID_OUT", 12)
    base = classifier(architecture, hide)
    texts = [
        copies_of(base, WORDS, all_sets(5, 2)),
        copies_of(base, ["good"], all_sets(1, 1)),
        copies_of(base, ["unbelievable"] * 9, all_sets(9, 1)[[4]]),
        copies_of(base, WORDS, all_sets(5, 1)[[0, 3]]),
        copies_of(base, ["a"] * 80, sampled_sets(base.encoder.most_words(), 1, 3, seed=1)),
        copies_of(base, WORDS, all_sets(5, 1), PREMISE),
        copies_of(base, ["dull", "film"], all_sets(2, 1)),
        copies_of(base, ["[SEP]", "film", "unbelievableness"], all_sets(3, 2)),
    ]

    def shown(blocks):
        return [
            (block.ids[row, :length].tolist(), block.positions[row, :length].tolist())
            for block in blocks
            for row, length in enumerate(block.lengths)
        ]

    together = base.encoder.rows_of_all(texts)
    assert len(together) < len(texts)
    assert shown(together) == shown([base.encoder.rows(one) for one in texts])
