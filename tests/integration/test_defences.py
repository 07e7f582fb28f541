"""Each defence against an independent computation on tiny models, and at strength zero."""

import itertools
import json
import math

import made_up
import numpy as np
import pytest
import tiny_models
import torch
from safetensors.torch import load_file
from torch.nn import functional

from ranmask.attacks.resources.neighbours import NeighbourTable
from ranmask.certificates.kept import Retention
from ranmask.errors import OptionError
from ranmask.models.base import MaskedCopies
from ranmask.models.batching import batches
from ranmask.models.huggingface import HuggingFaceClassifier
from ranmask.models.mixed_precision import MixedPrecisionClassifier
from ranmask.training.defence import Defence, Step
from ranmask.training.defences import build, parts_of
from ranmask.training.defences.dne import Dne, _risen
from ranmask.training.defences.hotflip import HotFlip, WordTokens
from ranmask.training.defences.perturbation import FreeLb, Pgd
from ranmask.training.defences.safer import Safer
from ranmask.training.encoder import train_encoder
from ranmask.training.masking import MaskingPlan, Turn
from ranmask.training.options import WHOLE_TEXTS, TrainingOptions
from ranmask.words import document

pytestmark = pytest.mark.usefixtures("quiet")

TEXTS = ("the film was not good", "a dull plot", "unbelievably fine acting")
CLASSES = (0, 2, 1)
TABLE = NeighbourTable(
    {
        "film": ["plot", "story"],
        "good": ["great", "fine"],
        "great": ["good"],
        "fine": ["good", "great"],
        "dull": ["awful", "bad"],
        "awful": ["bad"],
        "bad": ["awful"],
        "plot": ["story"],
        "story": ["plot"],
    },
    name="tiny",
)
ARCHITECTURES = ("bert", "roberta", "distilbert", "electra", "albert", "deberta", "mpnet")


@pytest.fixture
def precise(one_thread):
    """A tiny BERT of its own, in double precision and without dropout."""
    model, tokenizer = tiny_models.bert()
    copied = type(model)(model.config)
    copied.load_state_dict(model.state_dict())
    return HuggingFaceClassifier(copied.double(), tokenizer)


def parts_of_texts(base, texts=TEXTS, kept=None):
    """All rows of whole texts, in parts of two or more; which text each row is; where it begins."""
    rows = []
    for text in texts:
        one = document(text)
        shown = list(range(len(one.words))) if kept is None else kept
        rows.append(base.encoder.rows(MaskedCopies(one, len(one.words), np.array([shown]))))
    plan = list(batches(rows, tokens=1 << 20, least_rows=2, pad_id=base.encoder.pad_id))
    order = [int(place) for batch in plan for place in batch.places]
    bodies = [
        torch.tensor(
            [
                [column >= rows[place].first_body_place for column in range(batch.ids.shape[1])]
                for place in batch.places
            ]
        )
        for batch in plan
    ]
    return [base.inputs(batch) for batch in plan], order, bodies


def step_of(base, *, texts=TEXTS, classes=CLASSES, seed=5, scale=1.0, kept=None):
    parts, order, bodies = parts_of_texts(base, texts, kept)
    wanted = torch.tensor([classes[place] for place in order])
    return Step(
        base.model,
        base,
        parts,
        bodies,
        lambda logits: functional.cross_entropy(logits, wanted),
        lambda loss: (loss * scale).backward(),
        seed,
    ), wanted


def gradients_of(base, loss):
    """Of the weights: those already there, and the loss's."""
    loss.backward()
    found = {
        name: parameter.grad.clone()
        for name, parameter in base.model.named_parameters()
        if parameter.grad is not None
    }
    base.model.zero_grad()
    return found


def by_hand(base, part, classes, shift):
    """The sum of the losses of a part's rows with shifted embeddings, by another door."""
    ids = part["input_ids"]
    rest = {name: value for name, value in part.items() if name != "input_ids"}
    vectors = base.model.get_input_embeddings().weight[ids] + shift
    logits = base.model(inputs_embeds=vectors, **rest).logits
    picked = logits.gather(1, classes[:, None])[:, 0]
    return (logits.logsumexp(1) - picked).sum()


def split_like(parts, values):
    ends = list(itertools.accumulate(len(part["input_ids"]) for part in parts))
    return [values[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def moved(shift, gradient, defence):
    """A step of ascent and the way back into the ball, row by row, in plain Python."""
    rows = []
    for own, slope in zip(shift.tolist(), gradient.tolist(), strict=True):
        numbers = [value for token in slope for value in token]
        if defence.norm == "l2":
            length = math.sqrt(sum(value * value for value in numbers))
        else:
            length = max(map(abs, numbers))
        new = [
            [a + defence.step_size * b / length for a, b in zip(token, up, strict=True)]
            for token, up in zip(own, slope, strict=True)
        ]
        if defence.norm == "l2":
            far = math.sqrt(sum(value * value for token in new for value in token))
            shrink = min(1.0, defence.max_norm / far) if far else 1.0
            rows.append([[value * shrink for value in token] for token in new])
        else:
            most = defence.max_norm
            rows.append([[max(-most, min(most, value)) for value in token] for token in new])
    return torch.tensor(rows, dtype=torch.float64)


def words_only(base, part):
    """Where words are, from the tokenizer's own list of special tokens."""
    special = base.tokenizer.all_special_ids
    return torch.tensor(
        [[token not in special for token in row] for row in part["input_ids"].tolist()]
    )


def ascents(base, step, wanted, defence, points):
    """The shifts at the first ``points`` points of the ascent, each a list with one a part."""
    shifts = [shift.double() for shift in defence.start(step)]
    found = [shifts]
    total = len(wanted)
    for _ in range(points - 1):
        after = []
        for part, classes, shift in zip(
            step.parts, split_like(step.parts, wanted), shifts, strict=True
        ):
            leaf = shift.clone().requires_grad_()
            [slope] = torch.autograd.grad(by_hand(base, part, classes, leaf) / total, leaf)
            slope = slope * words_only(base, part)[..., None]
            after.append(moved(shift, slope, defence))
        shifts = after
        found.append(shifts)
    return found


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_pgd_is_the_ascent_written_by_hand(precise, norm):
    defence = Pgd(steps=3, step_size=0.7, initial_magnitude=0.3, max_norm=0.9, norm=norm)
    step, wanted = step_of(precise)
    expected = ascents(precise, step, wanted, defence, 4)[-1]
    losses = [
        by_hand(precise, part, classes, shift)
        for part, classes, shift in zip(
            step.parts, split_like(step.parts, wanted), expected, strict=True
        )
    ]
    by_hand_gradients = gradients_of(precise, sum(losses) / len(wanted))
    loss = defence.loss(step)
    assert loss.item() == pytest.approx(sum(losses).item() / len(wanted), rel=1e-6)
    assert loss > step.loss() * 1.05  # it went somewhere
    found = gradients_of(precise, loss)
    for name, gradient in by_hand_gradients.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("scale", [1.0, 4096.0], ids=["plain", "scaled"])
def test_freelb_is_the_mean_along_the_ascent(precise, norm, scale):
    """Whatever a scaler for mixed precision multiplies the losses with."""
    defence = FreeLb(steps=3, step_size=0.7, initial_magnitude=0.3, max_norm=0.9, norm=norm)
    step, wanted = step_of(precise, scale=scale)
    points = ascents(precise, step, wanted, defence, 3)
    mean = sum(
        by_hand(precise, part, classes, shift)
        for shifts in points
        for part, classes, shift in zip(
            step.parts, split_like(step.parts, wanted), shifts, strict=True
        )
    ) / (3 * len(wanted))
    expected = gradients_of(precise, mean)
    loss = defence.loss(step)
    assert loss.item() == pytest.approx(mean.item(), rel=1e-6)
    found = gradients_of(precise, loss * scale)
    assert set(found) == set(expected)
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name] / scale, gradient, rtol=1e-4, atol=1e-7)


def test_the_gradient_of_a_shift_is_that_of_finite_differences(precise):
    step, _ = step_of(precise)
    zeros = [torch.zeros(*places.shape, 32, dtype=torch.float64) for places in step.words]
    leaves = [zero.clone().requires_grad_() for zero in zeros]
    slopes = torch.autograd.grad(step.loss(leaves), leaves)
    width = 1e-5
    for place, slope in enumerate(slopes):
        for row, token, dimension in [(0, 1, 0), (0, 2, 7), (0, slope.shape[1] - 1, 31)]:
            up = [zero.clone() for zero in zeros]
            up[place][row, token, dimension] = width
            down = [-one for one in up]
            numeric = (step.loss(up) - step.loss(down)).item() / (2 * width)
            assert slope[row, token, dimension].item() == pytest.approx(numeric, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_special_tokens_and_padding_stay_where_they_are(classifier, architecture):
    base = classifier(architecture)
    step, _ = step_of(base, kept=[0, 2])  # the word between them is masked
    defence = FreeLb(step_size=2.0, max_norm=1.0)
    shifts = defence.start(step)
    leaves = [shift.requires_grad_() for shift in shifts]
    loss = step.loss(leaves)
    slopes = torch.autograd.grad(loss, leaves)
    assert any(part.get("attention_mask", torch.ones(1)).min() == 0 for part in step.parts)
    untouched = 0
    for part, moved_by, slope in zip(
        step.parts, defence.ascended(step, leaves, slopes), slopes, strict=True
    ):
        words = words_only(base, part)
        untouched += int((~words).sum())
        assert (moved_by[~words] == 0).all()
        assert (moved_by[words].abs().amax(-1) > 0).all()
        assert slope[words].abs().sum() > 0
        assert (moved_by.flatten(1).norm(dim=1) <= 1 + 1e-6).all()
    assert untouched
    zeros = [torch.zeros_like(shift) for shift in shifts]
    torch.testing.assert_close(step.loss(zeros), step.loss(), rtol=0, atol=0)


@pytest.mark.parametrize("defence", [Pgd(steps=2), FreeLb(steps=2)], ids=["pgd", "freelb"])
def test_mixed_precision_gives_nearly_the_same_gradients(classifier, defence):
    base = classifier("bert")
    step, _ = step_of(base)
    plain = gradients_of(base, defence.loss(step))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed_loss = defence.loss(step)
    assert mixed_loss.dtype == torch.float32
    mixed = gradients_of(base, mixed_loss)
    flat, flat_mixed = (torch.cat([g.flatten() for g in one.values()]) for one in (plain, mixed))
    assert functional.cosine_similarity(flat, flat_mixed, dim=0) > 0.97


@pytest.mark.parametrize("architecture", ["pair_bert", "pair_roberta"])
def test_the_premise_of_a_pair_is_left_alone(classifier, architecture):
    """No attack changes it, no certificate covers it, and it does not count."""
    base = classifier(architecture)
    pair = ("the very good film was not bad but dull", "good story")
    step, _ = step_of(base, texts=[pair, pair], classes=[0, 1])
    [part], [words] = step.parts, step.words
    tokens = base.tokenizer.convert_ids_to_tokens(part["input_ids"][0])
    hypothesis = [token for token, word in zip(tokens, words[0].tolist(), strict=True) if word]
    assert "".join(hypothesis).replace("Ġ", "") == "goodstory"
    [shift] = FreeLb(max_norm=1.0).start(step)
    assert (shift[~words] == 0).all() and (shift[words] != 0).any()
    flips = HotFlip(change_rate=0.5)
    flips.begin(base)
    torch.manual_seed(0)
    gradient = torch.randn(*part["input_ids"].shape, 32)
    changed = flips.flipped(step, part["input_ids"], words, gradient) != part["input_ids"]
    assert changed.sum(1).tolist() == [1, 1] and not (changed & ~words).any()
    hulls = Dne(TABLE)
    hulls.begin(base)
    assert (hulls.corners(part["input_ids"], words)[~words][:, 1:] == -1).all()


def test_a_short_copy_has_a_word_flipped_too():
    flips = HotFlip(change_rate=0.2)
    assert [flips.most(tokens) for tokens in (1, 2, 7, 8, 20)] == [1, 1, 1, 2, 4]
    assert HotFlip(change_rate=0.0).most(20) == 0


def test_an_overflow_does_not_move_the_shift(classifier):
    step, _ = step_of(classifier("bert"))
    defence = FreeLb(max_norm=1.0)
    shifts = defence.start(step)
    broken = [torch.full_like(shift, torch.inf) for shift in shifts]
    for before, after in zip(shifts, defence.ascended(step, shifts, broken), strict=True):
        torch.testing.assert_close(after, before)


def test_shifts_are_drawn_from_the_step(classifier):
    base = classifier("bert")
    first, again, other = (FreeLb().start(step_of(base, seed=seed)[0]) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True))


# -- flips -------------------------------------------------------------------------------------


def candidates(base, flips):
    """For each token, what it may become, from the texts of the vocabulary."""
    ids = base.tokenizer.get_vocab()
    letters = [
        place
        for text, place in ids.items()
        if text.isalpha() and place not in base.tokenizer.all_special_ids
    ]
    if flips == "words":
        return dict.fromkeys(ids.values(), letters)
    return {
        ids[word]: [ids[other] for other in others if other in ids]
        for word, others in TABLE.table.items()
    }


@pytest.mark.parametrize("flips", ["words", "synonyms"])
@pytest.mark.parametrize("most", [1, 2])
def test_hotflip_makes_the_best_flips_of_the_linearised_loss(precise, flips, most):
    """Against all choices of places and tokens."""
    texts = ["the film was good", "dull plot but fine"]  # words of one token
    table = TABLE if flips == "synonyms" else None
    defence = HotFlip(change_rate=most / 4, flips=flips, neighbours=table)
    defence.begin(precise)
    step, _ = step_of(precise, texts=texts)
    [part] = step.parts
    ids = part["input_ids"]
    shift = torch.zeros(*ids.shape, 32, dtype=torch.float64, requires_grad=True)
    [slope] = torch.autograd.grad(step.loss([shift]), shift)
    vectors = precise.model.get_input_embeddings().weight.detach()
    allowed = candidates(precise, flips)
    flipped = defence.flipped(step, ids, words_only(precise, part), slope)
    for row in range(len(ids)):
        places = range(1, ids.shape[1] - 1)

        def gain(flips_made, row=row):
            return sum(
                float(slope[row, place] @ (vectors[token] - vectors[ids[row, place]]))
                for place, token in flips_made
            )

        best = 0.0
        for chosen in itertools.combinations(places, most):
            options = [[(p, t) for t in allowed.get(int(ids[row, p]), [])] for p in chosen]
            singles = [max(map(gain, [[one] for one in few]), default=0.0) for few in options]
            if most == 1 or flips == "synonyms":
                every = itertools.product(*([None, *few] for few in options))
                gains = [gain([one for one in flip if one]) for flip in every]
                best = max(best, *gains)
            else:
                best = max(best, sum(max(0.0, one) for one in singles))
        made = [(p, int(flipped[row, p])) for p in places if flipped[row, p] != ids[row, p]]
        assert 0 < len(made) <= most
        assert gain(made) == pytest.approx(best, rel=1e-9)
        assert (flipped[row, [0, -1]] == ids[row, [0, -1]]).all()


def test_hotflip_learns_from_both_texts(precise):
    defence = HotFlip(change_rate=0.4)
    defence.begin(precise)
    step, _ = step_of(precise)
    clean = step.loss()
    loss = defence.loss(step)
    found = gradients_of(precise, loss)
    shifts = [
        torch.zeros(*places.shape, 32, dtype=torch.float64, requires_grad=True)
        for places in step.words
    ]
    slopes = torch.autograd.grad(step.loss(shifts), shifts)
    flipped = [
        {**part, "input_ids": defence.flipped(step, part["input_ids"], places, slope)}
        for part, places, slope in zip(step.parts, step.words, slopes, strict=True)
    ]
    other = step.loss(parts=flipped)
    assert other.item() != pytest.approx(clean.item(), rel=0.01)
    assert loss.item() == pytest.approx((clean.item() + other.item()) / 2)
    expected = gradients_of(precise, (step.loss() + other) / 2)
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient)


@pytest.mark.parametrize("architecture", ["bert", "roberta", "albert"])
def test_only_whole_words_are_exchanged(classifier, architecture):
    """What comes of an exchange is what the tokenizer reads from the text with other words."""
    base = classifier(architecture)
    tokens = WordTokens(base)
    assert {"film", "good", "story"} <= set(tokens.ids)
    assert not {"##ing", "believ", "Ġfilm", "▁film"} & set(tokens.ids)
    [part], *_ = parts_of_texts(base, ["the unbelievably good film plot re"])
    [ids] = part["input_ids"].tolist()
    [where] = tokens.exchangeable(part["input_ids"]).tolist()
    spelt = {place: word for word, place in tokens.ids.items()}
    shown = [spelt[token] for token, free in zip(ids, where, strict=True) if free]
    assert [word for word in shown if word != "the"] == (
        ["good", "film", "plot", "re"] if architecture == "bert" else ["good", "film"]
    )
    replaced = [
        tokens.ids["story"] if spelt.get(t) == "film" and f else t
        for t, f in zip(ids, where, strict=True)
    ]
    [other], *_ = parts_of_texts(base, ["the unbelievably good story plot re"])
    assert other["input_ids"].tolist() == [replaced]


# -- hulls -------------------------------------------------------------------------------------


def test_dne_is_the_ascent_written_by_hand(precise):
    defence = Dne(TABLE, steps=2, step_size=1.5)
    defence.begin(precise)
    texts = ["the film was good", "dull plot but fine"]
    step, wanted = step_of(precise, texts=texts)
    [part] = step.parts
    ids = part["input_ids"]
    corners = defence.corners(ids, words_only(precise, part))
    vectors = precise.model.get_input_embeddings().weight
    vocabulary = precise.tokenizer.get_vocab()
    spelt = {place: text for text, place in vocabulary.items()}
    for row, place in itertools.product(range(2), range(ids.shape[1])):
        word = spelt[int(ids[row, place])]
        names = {spelt[int(one)] for one in corners[row, place] if one >= 0}
        assert names == {word, *TABLE.table.get(word, ())}

    draws = torch.empty(corners.shape).exponential_(generator=step.generator()) * (corners >= 0)
    weights = (draws / draws.sum(-1, keepdim=True)).double()

    def shift(weights):
        moved_by = torch.zeros(*ids.shape, 32, dtype=torch.float64)
        for row, place in itertools.product(range(2), range(ids.shape[1])):
            for corner, weight in zip(corners[row, place], weights[row, place], strict=True):
                if corner >= 0:
                    moved_by[row, place] += (
                        weight * (vectors[corner] - vectors[ids[row, place]]).detach()
                    )
        return moved_by

    start = by_hand(precise, part, wanted, shift(weights)).item()
    for _ in range(2):
        leaf = weights.clone().requires_grad_()
        [slope] = torch.autograd.grad(by_hand(precise, part, wanted, shift(leaf)), leaf)
        for row in range(2):
            largest = slope[row].abs().max()
            grown = weights[row] * torch.exp(1.5 * slope[row] / largest)
            weights[row] = grown / grown.sum(-1, keepdim=True)
    expected = by_hand(precise, part, wanted, shift(weights)).item()
    loss = defence.loss(step)
    assert loss.item() == pytest.approx(expected / 2, rel=1e-6)
    assert expected > start


def test_dne_teaches_the_neighbours_too(precise):
    """The mixture is made of their embeddings, so that its gradient reaches them."""
    defence = Dne(TABLE, steps=1)
    defence.begin(precise)
    step, _ = step_of(precise, texts=["the film was good"], classes=[0])
    gradients = gradients_of(precise, defence.loss(step))
    vocabulary = precise.tokenizer.get_vocab()
    rows = gradients["bert.embeddings.word_embeddings.weight"].abs().sum(1)
    assert all(rows[vocabulary[word]] > 0 for word in ("film", "plot", "story", "great", "the"))
    assert rows[vocabulary["awful"]] == 0


# -- found by mutating them ---------------------------------------------------------------------


def test_the_first_shift_is_as_long_whatever_the_number_of_words(classifier):
    step, _ = step_of(classifier("bert"))
    for shift in FreeLb(initial_magnitude=0.5, max_norm=9.0).start(step):
        assert shift.flatten(1).norm(dim=1).tolist() == pytest.approx(
            [0.5 / 3**0.5] * len(shift), rel=0.2
        )


@pytest.mark.parametrize("flips", ["words", "synonyms"])
def test_hotflip_leaves_alone_what_cannot_be_exchanged(classifier, flips):
    """Special tokens, parts of words, and everything where no flip raises the loss."""
    base = classifier("bert")
    defence = HotFlip(
        change_rate=1.0, flips=flips, neighbours=TABLE if flips == "synonyms" else None
    )
    defence.begin(base)
    step, _ = step_of(base, texts=["unbelievably good film"], classes=[0])
    [part] = step.parts
    ids, places = part["input_ids"], step.words[0]
    torch.manual_seed(0)
    gradient = torch.randn(*ids.shape, 32)
    changed = defence.flipped(step, ids, places, gradient) != ids
    assert changed.any() and not (changed & ~defence._tokens.exchangeable(ids)).any()
    assert torch.equal(defence.flipped(step, ids, places, torch.zeros_like(gradient)), ids)


def test_a_word_with_few_neighbours_becomes_one_of_them(classifier):
    base = classifier("bert")
    defence = HotFlip(change_rate=1.0, flips="synonyms", neighbours=TABLE)
    defence.begin(base)
    vectors, vocabulary = (
        base.model.get_input_embeddings().weight.detach(),
        base.tokenizer.get_vocab(),
    )
    step, _ = step_of(base, texts=["great"], classes=[0])  # one neighbour, where others have two
    [part] = step.parts
    ids = part["input_ids"]
    away_from_both = -(vectors[vocabulary["great"]] + vectors[vocabulary["good"]])
    gradient = away_from_both.expand(*ids.shape, -1)
    flipped = defence.flipped(step, ids, step.words[0], gradient)
    assert flipped[0, 1] in (vocabulary["great"], vocabulary["good"])


def test_the_number_of_flips_is_rounded(classifier):
    base = classifier("bert")
    defence = HotFlip(change_rate=0.5)
    defence.begin(base)
    step, _ = step_of(base, texts=["good film plot"], classes=[0])
    [part] = step.parts
    torch.manual_seed(0)
    gradient = torch.randn(*part["input_ids"].shape, 32)
    flipped = defence.flipped(step, part["input_ids"], step.words[0], gradient)
    assert (flipped != part["input_ids"]).sum() == 2  # of three


def test_dne_moves_whole_words_only(classifier):
    base = classifier("bert")
    defence = Dne(TABLE)
    defence.begin(base)
    [part], *_ = parts_of_texts(base, ["goodly good"])  # good ##ly good
    corners = defence.corners(part["input_ids"], words_only(base, part))
    tokens = base.tokenizer.convert_ids_to_tokens(part["input_ids"][0])
    assert tokens == ["[CLS]", "good", "##ly", "good", "[SEP]"]
    assert (corners[0, :, 1:] >= 0).any(-1).tolist() == [False, False, False, True, False]


def test_half_a_hull_is_half_the_way(classifier):
    base = classifier("bert")
    step, _ = step_of(base, texts=["good film"], classes=[0])
    [part] = step.parts
    whole, half = (Dne(TABLE, hull=hull) for hull in (1.0, 0.5))
    for one in (whole, half):
        one.begin(base)
    corners = [whole.corners(part["input_ids"], step.words[0])]
    weights = [torch.rand(corners[0].shape)]
    vectors = step.embeddings.weight
    [far], [near] = (one.shifts(corners, weights, vectors) for one in (whole, half))
    assert far.abs().max() > 0.1
    torch.testing.assert_close(near, far / 2)


def test_an_overflow_does_not_move_the_weights_of_a_mixture():
    weights = torch.tensor([[[0.2, 0.8]]])
    torch.testing.assert_close(_risen(weights, torch.full_like(weights, torch.inf), 1.0), weights)


def test_safer_reads_another_copy_in_every_epoch_and_for_every_seed():
    defence = Safer(TABLE)
    text = document("good film " * 10)
    plans = [MaskingPlan((Retention(2),), "auto", 1, 0.0, seed) for seed in (0, 1)]

    def read(row, epoch, seed, progress=0.0):
        return defence.reads(text, plans[seed].text_seed(Turn(row, epoch, progress))).words

    copies = {read(*one) for one in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))}
    assert len(copies) == 4
    assert read(0, 1, 0, progress=0.5) == read(0, 1, 0)


def test_what_is_trained_is_measured_by_screened_votes_too():
    """As on a GPU in the end: these refuse a tolerance, which other models are given."""
    exact = HuggingFaceClassifier(*tiny_models.bert(), hide="drop")
    screened = MixedPrecisionClassifier(exact)
    options = TrainingOptions(mask_rate=0.5)
    for defence in (Defence(), Safer(TABLE)):
        measured = defence.validator(screened, options, final=True)
        assert measured.given_tolerance is None and measured.base is screened
        before = defence.validator(exact, options)
        assert before.given_tolerance == 0.0


def test_every_step_has_a_seed_of_its_own():
    def seed(phase, epoch, row, own=0):
        return MaskingPlan((Retention(2),), "auto", 1, 0.0, own, phase).step_seed(
            Turn(row, epoch, 0.0)
        )

    seeds = {seed(0, 0, 0), seed(1, 0, 0), seed(0, 1, 0), seed(0, 0, 1), seed(0, 0, 0, own=1)}
    assert len(seeds) == 5 and all(0 <= one < 2**63 for one in seeds)


# -- strength zero -----------------------------------------------------------------------------

STILL = {
    "pgd": {"max_norm": 0.0, "steps": 2},
    "freelb": {"max_norm": 0.0},
    "hotflip": {"change_rate": 0.0},
    "dne": {"hull": 0.0},
    "safer": {"set_size": 1},
}
ALIVE = {
    "pgd": {"max_norm": 1.0, "steps": 2},
    "freelb": {"max_norm": 1.0},
    "hotflip": {"change_rate": 0.5},
    "dne": {},
    "safer": {},
}
QUICK = {
    "epochs": 2,
    "evaluate_every": 1,
    "batch_size": 8,
    "learning_rate": 1e-3,
    "patience": None,
    "validation_rows": 6,
}


@pytest.fixture(scope="module")
def still_base(one_thread, tmp_path_factory):
    """A base without dropout."""
    folder = tmp_path_factory.mktemp("bases") / "still"
    model, tokenizer = tiny_models.untrained_bert()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module")
def table_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "tiny.json"
    path.write_text(json.dumps({word: list(others) for word, others in TABLE.table.items()}))
    return path


@pytest.fixture(scope="module")
def trained(still_base, table_file, tmp_path_factory):
    """Losses of every step, and the weights, of a run; each is trained once."""
    known = {}

    def run(name, masked=False, **given):
        key = name, masked, tuple(sorted(given.items()))
        if key not in known:
            own = {
                key: given.pop(key)
                for key in list(given)
                if key not in QUICK and key != "accumulate"
            }
            if name in ("dne", "safer"):
                own["neighbours"] = str(table_file)
            folder = tmp_path_factory.mktemp("runs") / "run"
            shown = {"keep": (2,), "hide": "mask"} if masked else WHOLE_TEXTS
            train_encoder(
                str(still_base),
                made_up.corpus(24, varied=True),
                made_up.corpus(6, "validation", seed=1),
                folder,
                TrainingOptions(**{**QUICK, **shown, **given}),
                defence=build(name, own) if name != "none" else None,
                device="cpu",
            )
            lines = [
                json.loads(line) for line in (folder / "training.jsonl").read_text().splitlines()
            ]
            losses = [line["loss"] for line in lines if "loss" in line]
            known[key] = losses, load_file(folder / "model.safetensors"), folder
        return known[key]

    return run


def assert_same(one, other):
    """The same losses in every step, and the same weights at the end."""
    assert one[0] == pytest.approx(other[0], rel=2e-6)
    for name, weight in one[1].items():
        # Attention does not depend on these: Adam makes steps of what rounding leaves of zero.
        if not name.endswith("key.bias"):
            torch.testing.assert_close(weight, other[1][name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "masked"),
    [(name, False) for name in STILL] + [(name, True) for name in STILL if name != "safer"],
)
def test_without_strength_it_is_plain_training(trained, name, masked):
    plain = trained("none", masked)
    assert len(plain[0]) == 6
    assert_same(trained(name, masked, **STILL[name]), plain)
    alive = trained(name, masked, **ALIVE[name])
    assert alive[0][1:] != pytest.approx(plain[0][1:], rel=1e-3)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("none", {}),
        ("pgd", {"max_norm": 1.0, "steps": 2, "initial_magnitude": 0.0}),
        ("freelb", {"max_norm": 1.0, "initial_magnitude": 0.0}),
        ("hotflip", {"change_rate": 0.4}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_batches_that_are_accumulated_make_the_same_step(trained, name, given):
    """Shifts start at the word itself here: random ones are drawn for each batch."""
    assert_same(trained(name, **given, batch_size=4, accumulate=2), trained(name, **given))


def test_a_defended_run_that_was_killed_goes_on_to_the_same_bytes(
    base_folder, tmp_path, monkeypatch
):
    """With dropout, and random shifts."""
    from ranmask.training import trainer

    class Killed(Exception):  # noqa: N818
        pass

    def train(folder):
        return train_encoder(
            str(base_folder),
            made_up.corpus(24),
            made_up.corpus(6, "validation", seed=1),
            folder,
            TrainingOptions(**{**QUICK, **WHOLE_TEXTS, "evaluate_every": 2}),
            defence=FreeLb(max_norm=1.0),
            device="cpu",
        )

    def killed(self, args, state, *_, **__):
        if state.global_step == 3:
            raise Killed

    train(tmp_path / "quiet")
    with monkeypatch.context() as patch:
        patch.setattr(trainer.Watcher, "on_step_begin", killed, raising=False)
        with pytest.raises(Killed):
            train(tmp_path / "killed")
    train(tmp_path / "killed")
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("quiet", "killed")]
    assert files[0] == files[1]


# -- names and options -------------------------------------------------------------------------


def test_names():
    assert parts_of("none") == (False, "none")
    assert parts_of("ranmask") == (True, "none")
    assert parts_of("pgd") == (False, "pgd")
    assert parts_of("ranmask+freelb") == (True, "freelb")
    for wrong in ("ranmask+safer", "ranmask+none", "ranmask+ranmask", "PGD", "", "+pgd"):
        with pytest.raises(OptionError, match="defence must be one of"):
            parts_of(wrong)


def test_descriptions_name_every_option():
    assert Defence().description() == {"name": "none"}
    assert Pgd().description() == {
        "name": "pgd",
        "steps": 10,
        "step_size": 0.3,
        "initial_magnitude": 0.5,
        "max_norm": 0.05,
        "norm": "l2",
    }
    described = Dne(TABLE).description()
    assert described["neighbours"]["name"] == "tiny"
    json.dumps(described)
    assert HotFlip().description() == {
        "name": "hotflip",
        "change_rate": 0.2,
        "flips": "words",
        "neighbours": None,
    }


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("pgd", {"steps": 0}, "steps must be a whole number of at least 1, not 0"),
        ("freelb", {"max_norm": -1}, "max_norm must be a number of at least 0, not -1"),
        ("freelb", {"norm": "l1"}, "norm must be one of l2, linf; not 'l1'"),
        ("hotflip", {"change_rate": 2}, "change_rate must be a number from 0 to 1, not 2"),
        ("hotflip", {"flips": "letters"}, "flips must be one of words, synonyms"),
        ("pgd", {"hull": 1.0}, "hull means nothing with defence='pgd'"),
        ("none", {"steps": 3}, "steps means nothing with defence='none'"),
        ("ranmask+freelb", {"set_size": 3}, "set_size means nothing with defence="),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_options_are_refused(name, given, message):
    with pytest.raises(OptionError, match=message):
        build(name, given)


def test_a_table_is_needed_for_synonyms(table_file, tmp_path):
    assert build("hotflip", {"flips": "synonyms", "neighbours": str(table_file)}).neighbours
    with pytest.raises(OptionError, match="go together"):
        build("hotflip", {"neighbours": str(table_file)})
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("good 1 0\nbad 0 1\n")
    with pytest.raises(OptionError, match="holds word vectors"):
        build("dne", {"neighbours": str(vectors)})
