"""The guards that ship, on the data that they were made of: same weights, same figures."""

import json
import shlex

import pytest
from benchmarks import guards
from benchmarks.guard_cards import FIGURES, card

from commands import run_cli
from ranmask import load_detector
from ranmask.data import data_folder
from ranmask.models import SHIPPED_FOLDER
from ranmask.runs.flag_counts import counted
from ranmask.smoothing.detector_store import GUARDS

DATA = data_folder()
NEEDED = ("sms_spam", "spamassassin", "enron_spam", "jigsaw_part", "hate_davidson", "injection_ood")
pytestmark = pytest.mark.skipif(
    DATA is None or not all((DATA / name).is_dir() for name in NEEDED),
    reason=f"no data of the guards: set RANMASK_DATA to the folder that holds {', '.join(NEEDED)}",
)


@pytest.fixture(scope="module")
def measured():
    return json.loads(FIGURES.read_text())


def rounded(value):
    """Without the last digits, by which bounds differ that were computed in other ways."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return round(value, 9) if isinstance(value, float) else value


@pytest.mark.parametrize("name", GUARDS)
def test_test_figures(name, measured):
    guard = load_detector(name)
    rows = [row for row in measured[name]["tests"] if "free" not in row["detector"]]
    assert [row["test"] for row in rows] == list(guards.GUARDS[name].tests)
    for row in rows:
        texts = guards.tests_of(name, row["test"])
        values = counted(guard.detect(texts.texts), texts.flags).values()
        assert rounded(values) == rounded({key: row[key] for key in values})


def test_the_same_bytes_are_made_again(tmp_path):
    guard = guards.GUARDS["spam-sms"]
    held_out = [guards.training_rows(name)[1] for name in guard.sets]
    made = guards.made(guard, guards.learned_rows(guard), held_out).detector
    made.save_pretrained(tmp_path)
    for file in ("ranmask.json", "model/words.safetensors"):
        assert (tmp_path / file).read_bytes() == (SHIPPED_FOLDER / "spam-sms" / file).read_bytes()


@pytest.mark.slow
def test_the_recipe_of_the_card(tmp_path, monkeypatch, measured):
    """What does not ship is made by the command that the card shows, as good as it says."""
    monkeypatch.chdir(tmp_path)
    [command] = [
        line for line in card("spam", measured["spam"]).splitlines() if "--also enron_spam" in line
    ]
    assert run_cli(*shlex.split(command)[1:]).exit_code == 0
    found = load_detector("spam-enron")
    for row in measured["spam"]["recipe"]:
        texts = guards.test_texts(row["test"])
        values = counted(found.detect(texts.texts), texts.flags).values()
        assert rounded(values) == rounded({key: row[key] for key in values})
