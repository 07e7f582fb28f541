"""Batches of training: every copy is where ``text`` and ``copy`` say that it is."""

import numpy as np
import pytest
import torch

from ranmask.certificates.kept import Retention
from ranmask.models import encoding
from ranmask.models.base import MaskedCopies, whole_copy
from ranmask.training import encoder
from ranmask.training.defence import Defence
from ranmask.training.encoder import Collator
from ranmask.training.masking import MaskingPlan, Turn
from ranmask.words import documents

TEXTS = documents(
    [
        "good film",
        "the plot was unbelievable and the acting unbelievably dull but fine",
        "a",
        "not good not bad not great not awful not fine",
        "story",
        "very very very very good",
    ]
)
LABELS = [2, 0, 1, 1, 0, 2]
TURNS = [Turn(row, 1, 0.5) for row in (1, 5, 0, 2, 3)]


def collated(base, turns=TURNS, texts=TEXTS, copies=4, family="auto", least_rows=1):
    plan = MaskingPlan((Retention(2),), family, copies, 0.0, 0)
    return plan, Collator(base, texts, LABELS, plan, 3, Defence(), least_rows)(turns)


def rows_of(part):
    """Token rows of a part, without its padding: ids and positions."""
    visible = part.get("attention_mask", torch.ones_like(part["input_ids"])).bool()
    for place, shown in enumerate(visible):
        positions = part["position_ids"][place][shown].tolist() if "position_ids" in part else None
        yield part["input_ids"][place][shown].tolist(), positions


@pytest.mark.parametrize("hide", ["drop", "mask"])
@pytest.mark.parametrize("family", ["auto", "windows"])
def test_every_row_is_the_copy_that_it_is_said_to_be(classifier, hide, family):
    base = classifier("bert", hide)
    plan, batch = collated(base, family=family)
    rows = [row for part in batch["parts"] for row in rows_of(part)]
    seen = set()
    for (ids, positions), text, copy in zip(
        rows, batch["text"].tolist(), batch["copy"].tolist(), strict=True
    ):
        document = TEXTS[TURNS[text].row]
        sets = plan.draw(len(document.words), TURNS[text]).sets
        expected = base.encoder.rows(MaskedCopies(document, len(document.words), sets[[copy]]))
        length = int(expected.lengths[0])
        assert ids == expected.ids[0, :length].tolist()
        if hide == "drop":
            assert positions == expected.positions[0, :length].tolist()
        seen.add((text, copy))
    there = {(text, copy) for text, copy in zip(*np.nonzero(batch["present"].numpy()), strict=True)}
    assert seen == there and len(seen) == len(rows)


def test_what_goes_with_each_text(classifier):
    plan, batch = collated(classifier("bert", "drop"))
    draws = [plan.draw(len(TEXTS[turn.row].words), turn) for turn in TURNS]
    assert batch["classes"].tolist() == [LABELS[turn.row] for turn in TURNS]
    assert batch["present"].sum(1).tolist() == [len(draw.sets) for draw in draws] == [4, 4, 1, 1, 4]
    assert batch["met"].tolist() == [[draw.met(d) for d in range(4)] for draw in draws]
    assert batch["words_per_copy"].tolist() == pytest.approx([one.words_per_copy for one in draws])
    assert batch["met"][:, 0].tolist() == [0] * 5
    assert "labels" not in batch  # the Trainer would count them


def test_few_parts_and_little_padding(classifier):
    base = classifier("bert", "mask")
    turns = [Turn(row % 6, row, 0.5) for row in range(60)]
    for some in (turns, turns[:2], turns[:1]):
        assert 1 <= len(collated(base, some)[1]["parts"]) <= encoder._PARTS
    _, batch = collated(base, turns)
    shapes = [part["input_ids"].shape for part in batch["parts"]]
    widest = max(width for _, width in shapes)
    assert sum(rows for rows, _ in shapes) == int(batch["present"].sum())
    assert sum(rows * width for rows, width in shapes) < 0.8 * sum(r for r, _ in shapes) * widest
    _, on_gpu = collated(base, turns, least_rows=encoder._GPU_ROWS)
    rows = [len(part["input_ids"]) for part in on_gpu["parts"]]
    assert sum(rows) == int(batch["present"].sum())
    assert all(some >= encoder._GPU_ROWS for some in rows[:-1])
    assert 1 < len(rows) < len(shapes)


def test_every_step_has_a_seed_of_its_own(classifier):
    base = classifier("bert", "mask")
    seeds = [int(collated(base, [turn])[1]["seed"]) for turn in TURNS]
    again = [int(collated(base, [turn])[1]["seed"]) for turn in TURNS]
    assert seeds == again and len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)


@pytest.mark.parametrize("hide", ["drop", "mask"])
def test_texts_laid_out_together_are_as_they_are_alone(classifier, hide):
    encode = classifier("bert", hide).encoder
    plan = MaskingPlan((Retention(2),), "auto", 3, 0.0, 0)
    texts = [*TEXTS, *documents([("a premise", "good film"), ("a premise", "the plot")])]
    copies = [
        MaskedCopies(text, len(text.words), plan.draw(len(text.words), Turn(row, 0, 0.5)).sets)
        for row, text in enumerate(texts)
    ]
    together = encode.rows_of_each(copies)
    for rows, alone in zip(together, map(encode.rows, copies), strict=True):
        for name in ("ids", "positions", "lengths"):
            assert np.array_equal(getattr(rows, name), getattr(alone, name)), name
        assert rows.first_body_place == alone.first_body_place
        assert rows.body_type == alone.body_type
    assert encode.rows_of_each([]) == []


def test_a_word_is_read_once_while_there_is_room(classifier, monkeypatch):
    encode = classifier("bert", "drop").encoder
    read, asked = encode._plain_ids, []
    monkeypatch.setattr(encode, "_plain_ids", lambda words: asked.extend(words) or read(words))
    monkeypatch.setattr(encode, "_known", {})
    first, second, third = (whole_copy(text, len(text.words)) for text in TEXTS[:3])
    rows = [encode.rows_of_all(copies)[0].ids.tolist() for copies in ([first], [first, second])]
    assert rows[0] == rows[1] and asked[:2] == [" good", " film"]
    assert len(asked) == len(set(asked)) == len(encode._known)
    monkeypatch.setattr(encoding, "_CACHED_WORDS", len(asked))
    encode.rows(third)
    assert set(encode._known) == {"a", " a"}
    assert encode.rows(first).ids.tolist() == rows[0]


def test_company_does_not_matter(classifier):
    """A text's copies are the same whatever else is in the batch."""
    base = classifier("bert", "drop")

    def rows_of_first(turns):
        _, batch = collated(base, turns)
        rows = [row for part in batch["parts"] for row in rows_of(part)]
        chosen = [
            (copy, row)
            for row, text, copy in zip(
                rows, batch["text"].tolist(), batch["copy"].tolist(), strict=True
            )
            if turns[text] == TURNS[0]
        ]
        return sorted(chosen)

    assert rows_of_first(TURNS) == rows_of_first(TURNS[:1]) == rows_of_first(TURNS[::-1])


def test_long_texts_are_read_as_far_as_the_model_reads_them(classifier):
    base = classifier("bert", "drop")
    long = documents([" ".join(["good"] * 200), "a film"])
    plan = MaskingPlan((Retention(None, 0.5),), "auto", 2, 0.0, 0)
    batch = Collator(base, long, [0, 1], plan, 1, Defence())([Turn(0, 0, 0.5), Turn(1, 0, 0.5)])
    read = base.words_read(long[0])
    assert read < 200
    widths = [part["input_ids"].shape[1] for part in batch["parts"]]
    assert max(widths) == read // 2 + 2
    assert batch["words_per_copy"][0].item() == pytest.approx(read / (read // 2 * 2))


def test_pairs_have_types_and_the_whole_premise(classifier):
    base = classifier("bert", "drop")
    pairs = documents([("the film was good", "a dull plot")])
    plan = MaskingPlan((Retention(1),), "auto", 8, 0.0, 0)
    [part] = Collator(base, pairs, [0], plan, 1, Defence())([Turn(0, 0, 0.5)])["parts"]
    tokenizer = base.tokenizer
    shown = [tokenizer.decode(ids) for ids in part["input_ids"]]
    assert sorted(shown) == [
        f"[CLS] the film was good [SEP] {word} [SEP]" for word in ("a", "dull", "plot")
    ]
    assert part["token_type_ids"][0].tolist() == [0, 0, 0, 0, 0, 0, 1, 1]
