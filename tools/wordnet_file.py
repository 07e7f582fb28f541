"""The words of WordNet as they come with ranmask, made from its database.

``python -m tools.wordnet_file FOLDER`` writes ``wordnet.json.gz``, of what is in ``index.noun``,
``data.noun``, ``noun.exc``, ... : synsets with their single words, the order of a word's meanings,
and irregular forms.  Glosses, relations and words of several words are left out.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from ranmask.attacks.resources.neighbours import WORDNET_FILE, WordNet


def packed(wordnet: WordNet) -> bytes:
    """The file's content."""
    content = {}
    for kind, found in wordnet.meanings.items():
        number = {key: place for place, key in enumerate(found.synsets)}
        several = {word: keys for word, keys in found.senses.items() if len(keys) > 1}
        content[kind] = {
            "synsets": list(found.synsets.values()),
            "order": {word: [number[key] for key in keys] for word, keys in several.items()},
            "irregular": found.irregular,
        }
    spelt = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return gzip.compress(spelt.encode(), 9, mtime=0)


if __name__ == "__main__":
    WORDNET_FILE.write_bytes(packed(WordNet.from_folder(Path(sys.argv[1]))))
