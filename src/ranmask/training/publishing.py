"""Models to the Hugging Face hub: the files that load them, and a card with figures in its head."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ranmask.errors import MissingDependencyError, ModelError, OutputError
from ranmask.models import hub, model_config
from ranmask.results.files import read_json
from ranmask.training.records import CARD, RECORD, TRAINING_FORMAT

_MOST_RADII = 5


def push_to_hub(
    folder: str | Path,
    repo_id: str,
    *,
    private: bool = True,
    revision: str | None = None,
    license: str | None = None,
    token: str | None = None,
) -> str:
    """Put a saved model into a repository of the hub, which is made if it is not there.

    `load_classifier` and `load_detector` load it by ``repo_id``.  Only what they need goes there,
    and the card (README.md), with what was measured on validation in its metadata.  No log, no
    texts, no answers of a model.

    Args:
        folder: One that ``save_pretrained``, ``ranmask train`` or ``ranmask protect`` wrote.
        repo_id: As ``someone/some-model``.
        private: Whether a new repository is; one that is there stays as it is.
        revision: The branch; the main one by default.
        license: The hub's name of a licence, for the card.  Mind the terms of the training data.
        token: Of the hub; by default the one that ``hf auth login`` kept.

    Returns:
        The address of the commit.
    """
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        raise MissingDependencyError("huggingface_hub", "hf") from error
    place = Path(folder)
    if model_config.of_folder(place) is None:
        raise ModelError(
            f"{str(folder)!r} holds no model of ranmask's (no {model_config.FILE_NAME}): save one "
            "there first, by save_pretrained or ranmask train"
        )
    with tempfile.TemporaryDirectory() as drafts:
        draft = Path(drafts) / "model"
        shutil.copytree(place, draft)
        (draft / CARD).write_text(hub_card(place, repo_id, license), encoding="utf-8")
        try:
            api = HfApi(token=token, library_name="ranmask")
            api.create_repo(repo_id, private=private, exist_ok=True)
            commit = api.upload_folder(
                repo_id=repo_id,
                folder_path=draft,
                allow_patterns=list(hub.MODEL_FILES),
                revision=revision,
                commit_message="Model of ranmask",
            )
        except (OSError, ValueError) as error:
            raise OutputError(
                f"cannot put {str(folder)!r} to {repo_id!r} on the hub: {hub.first_line(error)}"
            ) from error
    return str(commit.commit_url)


def hub_card(folder: Path, repo_id: str, license: str | None = None) -> str:
    """The card of a model in a folder, with the metadata that the hub reads in its head."""
    from huggingface_hub import ModelCard, ModelCardData

    known = model_config.of_folder(folder)
    assert known is not None
    record: Mapping[str, Any] = {}
    if (folder / RECORD).is_file():
        record = read_json(folder / RECORD, **TRAINING_FORMAT, error=ModelError)
    results = _results(record)
    name = repo_id.rpartition("/")[2]
    data = ModelCardData(
        library_name="ranmask",
        pipeline_tag="text-classification",
        tags=["certified-robustness", "adversarial-robustness", f"ranmask-{known.kind}"],
        license=license,
        metrics=sorted({result.metric_type for result in results}) or None,
        model_name=name if results else None,
        eval_results=results or None,
    )
    path = folder / CARD
    body = ModelCard(path.read_text(encoding="utf-8")).text if path.is_file() else f"# {name}\n"
    loader = "load_detector" if known.kind == model_config.DETECTOR else "load_classifier"
    use = f'```python\nfrom ranmask import {loader}\n\nmodel = {loader}("{repo_id}")\n```'
    return f"---\n{data.to_yaml()}\n---\n\n{body.strip()}\n\n## From the hub\n\n{use}\n"


def _results(record: Mapping[str, Any]) -> list[Any]:
    """What was measured on validation, as the hub has it."""
    from huggingface_hub import EvalResult

    measured, run = record.get("validation", {}), record.get("run", {})
    if not record.get("complete") or not isinstance(measured, Mapping):
        return []
    data = Path(run.get("validation", run.get("train", {})).get("name", "unknown")).name
    threat = run.get("options", {}).get("threat", "substitutions")
    figures = [
        (name, name.replace("_", " "), measured[name])
        for name in ("accuracy", "balanced_accuracy", "recall", "precision", "f1")
        if isinstance(measured.get(name), float)
    ]
    certified = measured.get("certified_accuracy", ())[1 : _MOST_RADII + 1]
    figures += [
        ("certified_accuracy", f"certified accuracy at {steps} ({threat})", share)
        for steps, share in enumerate(certified, 1)
    ]
    return [
        EvalResult(
            task_type="text-classification",
            dataset_type=data,
            dataset_name=data,
            dataset_split="validation",
            metric_type=kind,
            metric_name=name,
            metric_value=round(value, 4),
        )
        for kind, name, value in figures
    ]
