"""Python objects by name: ``module:attribute``."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

from ranmask.errors import ModelError

_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def is_import_name(name: str) -> bool:
    """Whether a model's name is ``module:attribute``, and no folder."""
    return bool(_NAME.fullmatch(name)) and not Path(name).is_dir()


def imported(name: str) -> Any:
    """What ``module:attribute`` names; the module may lie in the current folder."""
    module_name, _, attribute = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # a module beside the user's files, as `python -m` would find it
    try:
        module = importlib.import_module(module_name)
        return getattr(module, attribute)
    except ImportError as error:
        problem = f"cannot import {module_name!r} for the model {name!r}: {error}"
        raise ModelError(problem) from error
    except AttributeError as error:
        raise ModelError(f"module {module_name!r} has no {attribute!r}") from error
    except Exception as error:  # whatever the module does when it is imported
        problem = f"importing {module_name!r} for the model {name!r} raised {type(error).__name__}"
        raise ModelError(f"{problem}: {error}") from error
