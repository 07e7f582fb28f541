"""Where NLTK's data is.  Files are read where they lie; nothing is downloaded.

NLTK's own search path is global to the process, so it is neither used nor changed.
"""

from __future__ import annotations

import os
from pathlib import Path

from ranmask.data import data_folder
from ranmask.errors import DataError

STOP_WORDS = "corpora/stopwords/english"
TAGGER = "taggers/averaged_perceptron_tagger_eng/averaged_perceptron_tagger_eng"
"""Of the files ``.weights.json``, ``.tagdict.json`` and ``.classes.json``."""
UNIVERSAL_TAGS = "taggers/universal_tagset/en-ptb.map"


def nltk_file(file: str, folder: str | Path | None = None) -> Path:
    """The file ``file`` of NLTK's data, such as `STOP_WORDS`.

    It is looked for in ``folder``; else in the folders that the variable NLTK_DATA lists; else in
    ``nltk`` of ranmask's data folder, then in ``~/nltk_data``, where NLTK's downloader puts it.
    """
    places = _places(folder)
    for place in places:
        if (place / file).is_file():
            return place / file
    package = Path(file).parent.name
    looked = ", ".join(str(place) for place in places)
    raise DataError(
        f"there is no NLTK file {file} in {looked}: run 'python -m nltk.downloader -d FOLDER "
        f"{package}' and set NLTK_DATA=FOLDER"
    )


def _places(folder: str | Path | None) -> list[Path]:
    if folder is not None:
        return [Path(folder).expanduser()]
    # Someone said where: other data is never taken instead.
    if given := [part for part in os.environ.get("NLTK_DATA", "").split(os.pathsep) if part]:
        return [Path(part).expanduser() for part in given]
    data = data_folder()
    return ([] if data is None else [data / "nltk"]) + [Path("~/nltk_data").expanduser()]
