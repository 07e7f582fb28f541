"""Models to the hub and back.

The hub is a folder in the layout of its cache: what is uploaded lands there, filtered as the real
client filters it, and is loaded from there by the real client, offline.
"""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from huggingface_hub import ModelCard
from huggingface_hub.utils import filter_repo_objects

from ranmask import (
    ModelError,
    OutputError,
    ProtectedClassifier,
    SmoothedClassifier,
    load_classifier,
    load_default,
    load_detector,
    push_to_hub,
)
from ranmask.models import SHIPPED_FOLDER
from ranmask.smoothing.store import blend_folders, cascade_folders

REVISION = "0" * 40
TEXTS = [
    "Oil prices soared to a record high on Monday as traders feared supply cuts by OPEC",
    "The striker scored twice in the final as United won the cup for the third time",
]


@pytest.fixture
def uploads(tmp_path, monkeypatch):
    """Where the stand-in keeps what was uploaded; and the calls."""
    calls = []

    class StandIn:
        def __init__(self, token=None, library_name=None):
            calls.append(("token", token))

        def create_repo(self, repo_id, *, private, exist_ok):
            calls.append(("private", private))
            assert exist_ok

        def upload_folder(self, *, repo_id, folder_path, allow_patterns, revision, commit_message):
            repository = tmp_path / "hub" / f"models--{repo_id.replace('/', '--')}"
            snapshot = repository / "snapshots" / REVISION
            (repository / "refs").mkdir(parents=True)
            (repository / "refs" / (revision or "main")).write_text(REVISION)
            files = (path for path in Path(folder_path).rglob("*") if path.is_file())
            names = [path.relative_to(folder_path).as_posix() for path in files]
            for name in filter_repo_objects(names, allow_patterns=allow_patterns):
                (snapshot / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(Path(folder_path) / name, snapshot / name)
            calls.append(("uploaded", snapshot))
            return SimpleNamespace(commit_url=f"https://hub.example/{repo_id}/commit/{REVISION}")

    monkeypatch.setattr("huggingface_hub.HfApi", StandIn)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return calls


def uploaded(calls):
    return dict(calls)["uploaded"]


class TestThereAndBack:
    @pytest.mark.parametrize("loader", [load_classifier, SmoothedClassifier.from_pretrained])
    def test_a_word_table(self, uploads, loader):
        address = push_to_hub(SHIPPED_FOLDER / "news-words", "someone/table")
        assert address == f"https://hub.example/someone/table/commit/{REVISION}"
        expected = load_default("news-words").certify(TEXTS)
        assert loader("someone/table").certify(TEXTS) == expected

    def test_of_a_revision(self, uploads):
        push_to_hub(SHIPPED_FOLDER / "news-words", "someone/table", revision="other")
        assert load_classifier("someone/table", revision="other").labels
        with pytest.raises(ModelError, match="someone/table"):
            load_classifier("someone/table")

    def test_a_detector(self, uploads):
        push_to_hub(SHIPPED_FOLDER / "spam-sms", "someone/guard")
        text = ["WINNER!! You have won a FREE prize, call now to claim your reward"]
        assert load_detector("someone/guard").detect(text) == load_detector("spam-sms").detect(text)

    def test_several_models_in_one(self, uploads, tmp_path):
        def model(texts):
            return [[0.1, 0.7, 0.1, 0.1] for _ in texts]

        words = load_default("news-words")
        ProtectedClassifier.beside(words, model, (2,)).save_pretrained(str(tmp_path / "beside"))
        push_to_hub(tmp_path / "beside", "someone/beside")
        with pytest.raises(ModelError, match="which a folder cannot hold"):
            load_classifier("someone/beside")  # no function that a folder names is run
        loaded = load_classifier("someone/beside", reader=model)
        assert isinstance(loaded, ProtectedClassifier)
        expected = ProtectedClassifier.beside(words, model, (2,)).certify(TEXTS)
        assert loaded.certify(TEXTS) == expected
        assert ProtectedClassifier.from_pretrained("someone/beside", reader=model).labels

    def test_a_blend(self, uploads, tmp_path):
        blended = blend_folders(["news-words", "news-words"], tmp_path / "blend")
        push_to_hub(tmp_path / "blend", "someone/blend")
        assert load_classifier("someone/blend").certify(TEXTS) == blended.certify(TEXTS)

    def test_a_cascade(self, uploads, tmp_path):
        detector = load_default("reviews-words", labels=["clean", "attacked"])
        detector.save_pretrained(str(tmp_path / "detector"))
        parts = ("news-words", "news-words", str(tmp_path / "detector"))
        cascade = cascade_folders(*parts, tmp_path / "cascade")
        push_to_hub(tmp_path / "cascade", "someone/cascade")
        assert load_classifier("someone/cascade").predict(TEXTS) == cascade.predict(TEXTS)


class TestWhatGoesThere:
    def test_neither_texts_nor_logs_nor_code(self, uploads, tmp_path):
        folder = tmp_path / "model"
        shutil.copytree(SHIPPED_FOLDER / "news-words", folder)
        for name in ("answers.jsonl", "training.jsonl", "protect.json", "a.py", "w.bin", "w.pkl"):
            (folder / name).write_text("private")
        push_to_hub(folder, "someone/table")
        names = {path.name for path in uploaded(uploads).iterdir()}
        assert names == {"README.md", "ranmask.json", "words.safetensors"}

    def test_private_unless_told(self, uploads):
        push_to_hub(SHIPPED_FOLDER / "news-words", "someone/table", token="secret")
        assert dict(uploads)["private"] is True
        assert dict(uploads)["token"] == "secret"

    def test_the_folder_stays_as_it_is(self, uploads, tmp_path):
        folder = tmp_path / "model"
        shutil.copytree(SHIPPED_FOLDER / "news-words", folder)
        before = (folder / "README.md").read_text()
        push_to_hub(folder, "someone/table")
        assert (folder / "README.md").read_text() == before

    def test_a_folder_without_a_model(self, uploads, tmp_path):
        with pytest.raises(ModelError, match=r"no ranmask\.json"):
            push_to_hub(tmp_path, "someone/table")

    def test_a_hub_that_refuses(self, uploads, monkeypatch):
        def refuse(*_, **__):
            raise OSError("401 Client Error\nmore")

        monkeypatch.setattr("huggingface_hub.HfApi.create_repo", refuse)
        with pytest.raises(OutputError, match=r"'someone/table' on the hub: 401 Client Error$"):
            push_to_hub(SHIPPED_FOLDER / "news-words", "someone/table")


class TestCard:
    def test_figures_are_those_of_the_record(self, uploads):
        push_to_hub(SHIPPED_FOLDER / "news-words", "someone/table", license="other")
        card = ModelCard.load(uploaded(uploads) / "README.md")
        record = json.loads((SHIPPED_FOLDER / "news-words/training.json").read_text())
        measured = record["validation"]
        found = [(result.metric_type, result.metric_value) for result in card.data.eval_results]
        proved = [("certified_accuracy", share) for share in measured["certified_accuracy"][1:6]]
        assert found == [("accuracy", measured["accuracy"]), *proved]
        assert {result.dataset_name for result in card.data.eval_results} == {"agnews"}
        assert (card.data.library_name, card.data.license) == ("ranmask", "other")
        assert "Terms of the data: AG News" in card.text

    def test_a_path_of_this_machine_is_no_name_of_data(self, uploads, tmp_path):
        folder = tmp_path / "model"
        shutil.copytree(SHIPPED_FOLDER / "news-words", folder)
        record = json.loads((folder / "training.json").read_text())
        record["run"]["validation"]["name"] = "/home/someone/secret/rows.csv"
        (folder / "training.json").write_text(json.dumps(record))
        push_to_hub(folder, "someone/table")
        card = (uploaded(uploads) / "README.md").read_text()
        assert "rows.csv" in card and "secret" not in card

    def test_without_a_record_there_are_no_figures(self, uploads):
        push_to_hub(SHIPPED_FOLDER / "spam-sms", "someone/guard")
        card = ModelCard.load(uploaded(uploads) / "README.md")
        assert card.data.eval_results is None
        assert 'load_detector("someone/guard")' in card.text

    def test_over_an_earlier_head(self, uploads, tmp_path):
        folder = tmp_path / "model"
        shutil.copytree(SHIPPED_FOLDER / "news-words", folder)
        (folder / "README.md").write_text("---\nlicense: mit\n---\n\n# Mine\n")
        push_to_hub(folder, "someone/table")
        text = (uploaded(uploads) / "README.md").read_text()
        assert text.count("---\n") == 2 and "# Mine" in text
