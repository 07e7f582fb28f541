"""The packed engine against the model's own forward, on real (tiny) models."""

import copy
import itertools
import unittest.mock

import numpy as np
import pytest
import tiny_models
import torch
import transformers

from ranmask import SmoothedClassifier
from ranmask.certificates.families import sampled_sets
from ranmask.errors import ClassifierError, ModelError, OptionError
from ranmask.models import huggingface
from ranmask.models.base import MaskedCopies
from ranmask.models.gpu import scoring
from ranmask.models.gpu.forward import Relative, TorchOperations
from ranmask.models.gpu.layout import FEW_COPIES, SharedRows, spell
from ranmask.models.gpu.packing import cut, pack, short
from ranmask.models.huggingface import HuggingFaceClassifier
from ranmask.models.mixed_precision import MixedPrecisionClassifier
from ranmask.smoothing.voting import batched_by_size
from ranmask.words import Document

pytestmark = pytest.mark.usefixtures("one_thread")

NAMES = ("bert", "roberta", "distilbert", "electra", "mpnet")
HIDING = ("mask", "drop")
PREMISE = "A dull story - not good"
WORDS = [
    *("the", "film", "was", "unbelievable", "and", "redo", "x-ray", "good", "not", "un-believ"),
    *("great", "story", "dull"),
]
ROUNDING = 2e-4  # logits are of size 10 to 25, and their last bit is 1e-6
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def classifiers():
    """``classifiers("bert", "drop")``: by the engine, and by the model itself."""
    built = {}

    def get(name, hide):
        if (name, hide) not in built:
            made = getattr(tiny_models, name)()
            built[name, hide] = [
                HuggingFaceClassifier(*made, hide=hide, backend=engine)
                for engine in ("packed", "plain")
            ]
        return built[name, hide]

    return get


def copies_of(base, words, keep, masks, premise=None, seed=0):
    document = Document(tuple(words), premise)
    read = base.words_read(document)
    return MaskedCopies(document, read, sampled_sets(read, min(keep, read), masks, seed))


def many_copies(base, premise=None):
    """Texts of all kinds: those for the device and those for the host, in one call."""
    return [
        copies_of(base, WORDS, 3, 200, premise),
        copies_of(base, WORDS[:5], 5, 1, premise),  # every word, in one copy
        copies_of(base, WORDS[2:], 2, 90, premise),
        copies_of(base, WORDS, 3, FEW_COPIES - 1, premise),
        copies_of(base, WORDS, 3, 200, premise),  # the same text once more
        copies_of(base, ["good"], 1, 1, premise),
        copies_of(base, WORDS * 12, 9, 70, premise),  # longer than the model takes
        copies_of(base, ["!" * 40, *WORDS], 4, 100, premise),  # a word of many tokens
        copies_of(base, WORDS, 1, 13, premise),
    ]


@pytest.mark.parametrize("hide", HIDING)
@pytest.mark.parametrize("name", NAMES)
class TestSameFunction:
    @pytest.mark.parametrize("premise", [None, PREMISE], ids=["single", "pair"])
    def test_all_kinds_of_texts_at_once(self, classifiers, name, hide, premise):
        packed, plain = classifiers(name, hide)
        copies = many_copies(packed, premise)
        found, expected = packed.score(copies), plain.score(copies)
        for one, other in zip(found, expected, strict=True):
            assert one.shape == other.shape
            assert np.abs(one - other).max() < ROUNDING
        assert np.ptp(np.concatenate(found), axis=0).min() > 1  # words do move the logits

    def test_token_rows_in_any_company(self, classifiers, name, hide):
        packed, plain = classifiers(name, hide)
        rows = packed.encoder.rows_of_all(many_copies(packed))
        expected = plain.score_rows(rows)
        for tokens in (1, 50, 1000, None):
            found = packed.score_rows(rows, tokens=tokens)
            assert np.abs(found - expected).max() < ROUNDING

    def test_company_moves_logits_within_the_tolerance(self, classifiers, name, hide):
        packed, _ = classifiers(name, hide)
        copies = many_copies(packed)
        together = packed.score(copies)
        alone = [packed.score([one])[0] for one in copies]
        for one, other in zip(together, alone, strict=True):
            assert 2 * np.abs(one - other).max() <= packed.tolerance
        turned = packed.score(copies[::-1])[::-1]
        for one, other in zip(together, turned, strict=True):
            assert 2 * np.abs(one - other).max() <= packed.tolerance


class TestBatchesAhead:
    def batches(self, base):
        copies = many_copies(base)
        return [copies[:3], copies[3:4], copies[4:]]

    @pytest.mark.parametrize("way", [0, 1], ids=["packed", "plain"])
    def test_scores_are_those_of_each_batch(self, classifiers, way):
        base = classifiers("bert", "drop")[way]
        found = list(base.score_each(iter(self.batches(base))))
        for one, other in zip(found, map(base.score, self.batches(base)), strict=True):
            assert all(map(np.array_equal, one, other))
        assert list(base.score_each([])) == []

    def test_a_batch_begins_before_the_one_before_is_fetched(self, classifiers, monkeypatch):
        base = classifiers("bert", "drop")[0]
        launch, seen = base._packed.launch, []

        def watched(copies):
            number = sum(what == "begun" for what, _ in seen)
            seen.append(("begun", number))
            logits = launch(copies)
            return lambda: seen.append(("fetched", number)) or logits()

        monkeypatch.setattr(base._packed, "launch", watched)
        list(base.score_each(self.batches(base)))
        begun, fetched = [("begun", n) for n in range(3)], [("fetched", n) for n in range(3)]
        assert seen == [*begun[:2], fetched[0], begun[2], *fetched[1:]]

    def test_the_last_text_of_a_full_batch_is_not_computed_by_itself(
        self, classifiers, monkeypatch
    ):
        base, many = classifiers("bert", "drop")[0], 70
        copies = [copies_of(base, WORDS, 3, many, seed=seed) for seed in range(9)]
        sizes = []

        def spelt(texts, encoder):
            sizes.append(len(texts))
            return spell(texts, encoder)

        monkeypatch.setattr(scoring, "spell", spelt)
        monkeypatch.setattr(scoring, "_ROWS_AT_ONCE", 4 * many + 1)
        for batch in batched_by_size(copies, 4 * many + 1):
            base.score(batch)
        assert sizes == [5, 4]

    def test_rechecked_batches_are_asked_about_again(self, classifiers):
        base = classifiers("bert", "drop")[0]
        smoothed = SmoothedClassifier(base, keep=2, recheck=2)
        [[copies]] = [list(smoothed.copies([Document(tuple(WORDS))]))]
        with unittest.mock.patch.object(smoothed._recheck, "check") as check:
            list(smoothed.score_each([[copies], [copies]]))
        assert check.call_count == 2


def test_singles_and_pairs_in_one_call(classifiers):
    packed, plain = classifiers("bert", "drop")
    copies = [
        copies_of(packed, WORDS, 3, 100, premise)
        for premise in (None, PREMISE, None, "good film", PREMISE)
    ]
    for one, other in zip(packed.score(copies), plain.score(copies), strict=True):
        assert np.abs(one - other).max() < ROUNDING


@pytest.mark.parametrize("layers", [1, 3])
def test_any_number_of_layers(layers):
    """The first layer may be the last one, which reads the table itself."""
    model, tokenizer = tiny_models._build(
        transformers.BertForSequenceClassification,
        transformers.BertConfig,
        tiny_models.wordpiece_tokenizer(),
        max_position_embeddings=tiny_models.LONGEST,
        num_hidden_layers=layers,
    )
    packed, plain = (
        HuggingFaceClassifier(model, tokenizer, backend=engine) for engine in ("packed", "plain")
    )
    copies = many_copies(packed)
    found, expected = (np.concatenate(one.score(copies)) for one in (packed, plain))
    assert np.abs(found - expected).max() < ROUNDING


def test_certificates_are_those_of_the_plain_path(classifiers):
    texts = [" ".join(WORDS), "a great film and not dull", "the story was awful"]
    for hide in HIDING:
        found, expected = (
            SmoothedClassifier(base, keep=2).certify(texts) for base in classifiers("bert", hide)
        )
        assert [(r.label, r.radius, r.votes) for r in found] == [
            (r.label, r.radius, r.votes) for r in expected
        ]


def test_screened_votes_are_computed_by_it(classifiers):
    packed, plain = classifiers("bert", "drop")
    screened = MixedPrecisionClassifier(packed)
    assert screened.fast._packed is not None
    copies = many_copies(packed)
    votes = np.concatenate(screened.score(copies)).argmax(axis=1)
    assert (votes == np.concatenate(plain.score(copies)).argmax(axis=1)).all()
    assert screened.rechecked > 0


class TestLayout:
    """What the device lays out is, number by number, what `encoding` lays out."""

    def test_a_table_is_no_larger_than_the_device_has_room_for(self, classifiers):
        packed, _ = classifiers("bert", "drop")
        spelt = spell([copies_of(packed, WORDS, 3, 100, seed=n) for n in range(9)], packed.encoder)
        room = int(2.5 * spelt.table_sizes[0])
        found = list(spelt.batches(packed.encoder, -(-room // 2)))
        assert found == [[0, 1], [2, 3], [4, 5], [6, 7], [8]]

    @pytest.mark.parametrize(
        ("name", "hide", "premise"),
        list(itertools.product(("bert", "roberta"), HIDING, (None, PREMISE))),
    )
    def test_rows_of_the_table_are_rows_of_the_encoder(self, classifiers, name, hide, premise):
        packed, _ = classifiers(name, hide)
        encoder = copy.copy(packed.encoder)
        encoder.first_position = 7
        random = np.random.default_rng(5)
        vocabulary = [*WORDS, "unbelievably", "re-redo", "!?!", "zzyzx"]
        copies = [
            copies_of(
                packed,
                random.choice(vocabulary, words).tolist(),
                keep,
                100,
                premise and premise[: 20 - 3 * keep],
                seed=words,
            )
            for words, keep in ((3, 1), (5, 4), (9, 2), (12, 3), (12, 5))
        ]
        shared = SharedRows(spell(copies, encoder), encoder, CPU)
        expected = encoder.rows_of_all(copies)
        lengths = np.concatenate([rows.lengths for rows in expected])
        assert (shared.lengths == lengths).all()
        tokens, positions, types = shared.table()
        seen = 0
        for rows, rising in cut(lengths, 400):
            packing = pack(rows, rising, CPU)
            index = shared.index(packing)
            columns = torch.stack([tokens, positions - 7, types])[:, index]
            for start, row in zip(packing.starts.tolist(), rows.tolist(), strict=True):
                found = columns[:, start : start + lengths[row]].numpy()
                assert (found == self.row_of(expected, row)).all()
                seen += 1
        assert seen == len(lengths)

    @pytest.mark.parametrize("hide", HIDING)
    @pytest.mark.parametrize("name", ["bert", "roberta"])
    def test_a_text_that_fills_the_model(self, classifiers, name, hide):
        """No place of the table has a position that the model does not know."""
        packed, plain = classifiers(name, hide)
        one, several = (
            int(packed.encoder.rows(copies_of(packed, ["film", word], 2, 1)).lengths[0])
            for word in ("film", "unbelievably")
        )
        films = ["film"] * (tiny_models.LONGEST - one + 2)
        for words in (films, [*films[: len(films) - 1 - (several - one)], "unbelievably"]):
            for keep in (2, len(words) - 1):
                copies = copies_of(packed, words, keep, 100)
                spelt = spell([copies], packed.encoder)
                assert spelt.suit(packed.encoder).all()
                if keep > 2:
                    assert spelt.longest == [tiny_models.LONGEST]
                found, expected = packed.score_copies([copies]), plain.score_copies([copies])
                np.testing.assert_allclose(found, expected, atol=ROUNDING)

    def test_numbers_that_need_more_bits_keep_them(self, classifiers):
        """Where there are many texts, or words of many tokens, what is sorted passes 2**16."""
        for numbers in ([3, 1, 2**16 - 1], [2**16, 1], [2**33, 5]):
            assert short(np.array(numbers)).tolist() == numbers
        packed, _ = classifiers("bert", "drop")
        long = copies_of(packed, ["!" * 40, *WORDS], 3, 1)
        one = spell([long], packed.encoder)
        many = spell([long] * (2**16 // int(one.sizes.max())), packed.encoder)
        assert (many.most_extra == one.most_extra).all()

    @pytest.mark.parametrize("hide", HIDING)
    def test_some_texts_are_as_if_spelt_alone(self, classifiers, hide):
        packed, _ = classifiers("bert", hide)
        sizes = ((9, 2), (12, 5), (5, 4), (12, 3))
        copies = [copies_of(packed, WORDS[:words], keep, 80 + keep) for words, keep in sizes]
        spelt = spell(copies, packed.encoder)
        assert spelt.some(range(4)) is spelt
        for chosen in ([0], [1, 2], [0, 3], [3]):
            some = spelt.some(chosen)
            alone = spell([copies[text] for text in chosen], packed.encoder)
            for name in ("rows", "visible", "shifts", "most_extra", "sizes", "kept", "lengths"):
                assert getattr(some, name).tolist() == getattr(alone, name).tolist(), name
            tables = [SharedRows(one, packed.encoder, CPU).table() for one in (some, alone)]
            for found, expected in zip(*tables, strict=True):
                assert found.tolist() == expected.tolist()

    @staticmethod
    def row_of(texts, row):
        for text in texts:
            if row < len(text.lengths):
                length = int(text.lengths[row])
                types = np.where(np.arange(length) < text.first_body_place, 0, text.body_type)
                return np.stack([text.ids[row, :length], text.positions[row, :length], types])
            row -= len(text.lengths)
        raise AssertionError

    def suits(self, base, words, keep, masks):
        [suits] = spell([copies_of(base, words, keep, masks)], base.encoder).suit(base.encoder)
        return suits

    def test_which_texts_are_left_to_the_host(self, classifiers):
        packed, _ = classifiers("bert", "drop")
        encoder = packed.encoder
        assert self.suits(packed, WORDS, 3, 200)
        # Rows that are cut where the model ends, ...
        assert not self.suits(packed, WORDS * 12, 9, 2000)
        # ... a table longer than the rows, ...
        assert not self.suits(packed, WORDS, len(WORDS), 1)
        # ... and words without tokens, which move others to the left.
        empty = "\u200b"
        assert encoder.inner_word_ids([empty]) == [()]
        assert not self.suits(packed, [empty, *WORDS], 3, 200)

    def test_words_without_tokens(self, classifiers):
        for hide in HIDING:
            packed, plain = classifiers("bert", hide)
            copies = [copies_of(packed, ["\u200b", *WORDS], 3, 200)]
            assert np.abs(packed.score(copies)[0] - plain.score(copies)[0]).max() < ROUNDING


class TestPacking:
    LENGTHS = np.sort(np.array([1, 2, 3] * 40 + [5] * 17 + [17, 31, 32, 33, 63, 64, 65, 129, 200]))

    def test_groups_and_tiles_have_every_token_once(self):
        for lengths in (self.LENGTHS, self.LENGTHS[-7:], np.full(9, 24), np.array([1])):
            packing = pack(np.arange(len(lengths)), lengths, CPU)
            starts = np.cumsum(lengths) - lengths
            owner = np.repeat(np.arange(len(lengths)), lengths)
            assert (packing.starts.numpy() == starts).all()
            assert (packing.owner.numpy() == owner).all()
            row = token = 0
            for part in packing.groups:
                for first, end, from_token, to_token, length, slot in part.groups.tolist():
                    assert (first, from_token) == (row, token)
                    assert to_token == starts[end - 1] + lengths[end - 1]
                    assert end - first <= part.columns // 2
                    assert (lengths[first:end] == length).all()
                    assert length <= 1 << slot
                    assert end - first == 1 or (
                        part.shared and (end - first) << slot <= part.columns
                    )
                    # How a row is added up follows from its length.
                    assert part.columns == next((n for n in (16, 32) if length <= n), 64)
                    row, token = end, to_token
            assert (row, token) == (len(lengths), lengths.sum())
            token = 0
            for part in packing.groups:
                for first, end, from_key, to_key, length, _ in part.tiles.tolist():
                    assert length == lengths[owner[first]]
                    assert first == token
                    assert 0 < end - first <= part.columns
                    # All keys of all rows that it has a token of, and of rows of no other tile ...
                    assert from_key == starts[owner[first]] or first == from_key
                    assert to_key == starts[owner[end - 1]] + lengths[owner[end - 1]]
                    # ... unless the tile is a part of one row.
                    assert (from_key, to_key) == (first, end) or owner[first] == owner[end - 1]
                    token = end
            assert token == lengths.sum()

    def test_cut_is_even_and_within_the_limit(self):
        lengths = np.random.default_rng(0).permutation(self.LENGTHS)
        for tokens in (1, 200, 300, 10**6):
            parts = list(cut(lengths, tokens))
            rows = np.concatenate([part for part, _ in parts])
            assert (np.sort(rows) == np.arange(len(lengths))).all()
            for part, rising in parts:
                assert (lengths[part] == rising).all()
                assert (np.diff(rising) >= 0).all()
                assert rising.sum() <= tokens or len(rising) == 1
        [*most, last] = [rising.sum() for _, rising in cut(np.full(1000, 10), 3000)]
        assert len(most) == 3
        assert last > 2000  # four even batches, not three full ones and a rest


class TestChoice:
    def test_only_gpus_use_it_unless_asked(self, classifiers):
        model, tokenizer = tiny_models.bert()
        assert HuggingFaceClassifier(model, tokenizer)._packed is None
        packed, plain = classifiers("bert", "drop")
        assert packed._packed is not None
        assert plain._packed is None
        assert packed.configured(hide="mask")._packed is not None

    def test_a_wrong_name_is_refused(self):
        with pytest.raises(OptionError, match="backend must be one of auto, packed, plain"):
            HuggingFaceClassifier(*tiny_models.bert(), backend="fast")

    def test_an_unknown_structure_is_refused(self):
        with pytest.raises(ModelError, match="AlbertForSequenceClassification is not known"):
            HuggingFaceClassifier(*tiny_models.albert(), backend="packed")

    def test_a_structure_that_only_looks_known_is_found_out(self):
        """Here a hook, which the engine cannot see, changes what the model computes."""
        model, tokenizer = copy.deepcopy(tiny_models.bert()[0]), tiny_models.bert()[1]
        model.bert.encoder.layer[0].register_forward_hook(lambda *a: a[-1] * 1.01)
        with pytest.raises(ModelError, match="moves logits by"):
            HuggingFaceClassifier(model, tokenizer, backend="packed")

    @pytest.fixture
    def on_gpu(self, monkeypatch):
        """As if this were one."""
        monkeypatch.setattr(huggingface, "_PACKED_ON", ("cpu",))

    @pytest.mark.parametrize("name", ["albert", "pair_bert"])
    def test_the_models_own_forward_instead_with_a_message(self, on_gpu, name):
        with pytest.warns(RuntimeWarning, match="the model's own forward is used"):
            base = HuggingFaceClassifier(*getattr(tiny_models, name)())
        assert base._packed is None
        assert base.score([copies_of(base, WORDS, 2, 70)])[0].shape == (70, 3)

    @pytest.mark.parametrize("raises", [True, False])
    def test_other_operations_instead_with_a_message(self, on_gpu, monkeypatch, raises):
        class Broken(TorchOperations):
            def add_and_norm(self, rows, residual, index, norm):
                if raises:
                    raise RuntimeError("no compiler")
                return super().add_and_norm(rows, residual, index, norm) * 1.01

        monkeypatch.setattr(scoring, "_operations", lambda _: [Broken(), TorchOperations()])
        reason = "no compiler" if raises else "moves logits by"
        with pytest.warns(RuntimeWarning, match=f"plain PyTorch is used.*Broken.*{reason}"):
            base = HuggingFaceClassifier(*tiny_models.bert())
        assert base._packed is not None
        monkeypatch.setattr(scoring, "_operations", lambda _: [Broken()])
        with pytest.warns(RuntimeWarning, match="the model's own forward is used"):
            assert HuggingFaceClassifier(*tiny_models.bert())._packed is None


class TestModelsThatChange:
    @pytest.fixture
    def both(self):
        model = copy.deepcopy(tiny_models.bert()[0])
        return [
            HuggingFaceClassifier(model, tiny_models.bert()[1], backend=engine)
            for engine in ("packed", "plain")
        ]

    @pytest.mark.parametrize("part", ["query", "value"])
    def test_trained_weights_are_followed(self, both, part):
        packed, plain = both
        copies = [copies_of(packed, WORDS, 3, 100)]
        [before] = packed.score(copies)
        with torch.no_grad():
            attention = packed.model.bert.encoder.layer[1].attention.self
            getattr(attention, part).weight.mul_(0.5)
        [after], [expected] = packed.score(copies), plain.score(copies)
        assert np.abs(after - before).max() > 0.1
        assert np.abs(after - expected).max() < ROUNDING

    def test_another_dtype(self, both):
        half = both[0].in_dtype("bfloat16")
        assert half._packed is not None
        copies = [copies_of(half, WORDS, 3, 100)]
        moved = np.abs(half.score(copies)[0] - both[1].score(copies)[0]).max()
        assert 0.001 < moved < 1
        assert half.tolerance > 0

    def test_what_is_not_finite_is_no_score(self, both):
        packed, _ = both
        copies = [copies_of(packed, WORDS, 3, 100)]
        with torch.no_grad():
            packed.model.classifier.bias[0] = float("inf")
        with pytest.raises(ClassifierError, match="not a finite number"):
            packed.score(copies)
        assert np.isinf(packed.raw_copies(copies)[:, 0]).all()


def test_nothing_to_score(classifiers):
    packed, _ = classifiers("bert", "mask")
    for score in (packed.score_copies, packed.score_rows):
        with pytest.raises(ClassifierError, match="no copies"):
            score([])


FARTHEST = 250


def bias_of_distances(heads, device, dtype="float32"):
    drawn = torch.randn(heads, 2 * FARTHEST + 1, device=device)
    return (3 * drawn).to(getattr(torch, dtype))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("biased", [False, True], ids=["absolute", "relative"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("size", [16, 32, 64])
def test_kernels_give_a_row_the_same_bits_in_any_company(dtype, size, biased):
    from ranmask.models.gpu.kernels import TritonOperations

    torch.manual_seed(1)
    device, heads, rows = torch.device("cuda"), 4, 300
    width = heads * size
    bias = bias_of_distances(heads, device, dtype)
    for length in (1, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 33, 50, 64, 65, 100, 200):
        drawn = torch.randn(rows, length, 3 * width, device=device).to(getattr(torch, dtype))
        standing = torch.randint(0, FARTHEST, (rows, length), device=device)
        found = []
        for order in (torch.arange(rows), torch.arange(rows).flip(0), torch.randperm(rows)[:37]):
            packing = pack(np.arange(len(order)), np.full(len(order), length), device)
            table = drawn[order.to(device)].reshape(-1, 3 * width)
            first = table[packing.starts, :width].contiguous()
            positions = standing[order.to(device)].reshape(-1)
            how = heads, 0.2, Relative(positions, bias) if biased else None
            with torch.inference_mode():
                every = TritonOperations().attend(table, None, None, packing, *how)
                firsts = TritonOperations().attend(table[:, width:], first, None, packing, *how)
            kept = torch.zeros(rows, length + 1, width, device=device, dtype=drawn.dtype)
            kept[order, :length] = every.view(len(order), length, width)
            kept[order, length] = firsts
            found.append((order, kept))
        for order, kept in found[1:]:
            assert torch.equal(kept[order], found[0][1][order]), length


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("size", [16, 24, 64])
def test_kernels_do_what_plain_operations_do(dtype, size):
    from ranmask.models.gpu.kernels import TritonOperations

    torch.manual_seed(0)
    device, heads = torch.device("cuda"), 2
    width = heads * size
    limit = 64 * torch.finfo(getattr(torch, dtype)).eps

    def drawn(rows, columns):
        return torch.randn(rows, columns, device=device).to(getattr(torch, dtype))

    for lengths in (TestPacking.LENGTHS, np.full(300, 5), np.full(40, 50)):
        packing = pack(np.arange(len(lengths)), lengths, device)
        table, index = drawn(50, 3 * width), torch.randint(0, 50, (packing.tokens,), device=device)
        query = drawn(len(lengths), width)
        positions = torch.randint(0, FARTHEST, (packing.tokens,), device=device)
        relative = Relative(positions, bias_of_distances(heads, device, dtype))
        norm = torch.nn.LayerNorm(width, device=device, dtype=getattr(torch, dtype))
        rows = drawn(packing.tokens, width)
        with torch.inference_mode():
            found, expected = (
                [
                    one.attend(table, None, index, packing, heads, 0.2),
                    one.attend(table[index], None, None, packing, heads, 0.2),
                    one.attend(table[:, width:], query, index, packing, heads, 0.2),
                    one.attend(table, None, index, packing, heads, 0.2, relative),
                    one.attend(table[:, width:], query, index, packing, heads, 0.2, relative),
                    one.add_and_norm(rows.clone(), table[:, :width].contiguous(), index, norm),
                    one.activate(transformers.activations.GELUActivation(), rows.clone()),
                ]
                for one in (TritonOperations(), TorchOperations())
            )
        for one, other in zip(found, expected, strict=True):
            assert (one - other).abs().max() <= limit
