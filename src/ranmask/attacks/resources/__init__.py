"""What attacks know of language: each resource is an object that says what it is.

Nothing is downloaded in silence: a resource is read from a file or folder that is there, or the
error says how to get it.  Hugging Face models may be named by their hub id, which is to ask for a
download.  Every resource has ``description()``, plain JSON for the record of a result.
"""

from ranmask.attacks.resources.masked_lm import MaskedLM
from ranmask.attacks.resources.neighbours import NeighbourTable, WordVectors, load_neighbours
from ranmask.attacks.resources.sentence_encoders import (
    HuggingFaceSentenceEncoder,
    UniversalSentenceEncoder,
    load_sentence_encoder,
)
from ranmask.attacks.resources.tagging import NltkTagger, load_tagger
from ranmask.attacks.resources.word_lists import (
    StopWords,
    Vocabulary,
    load_stop_words,
    vocabulary_of,
)

__all__ = [
    "HuggingFaceSentenceEncoder",
    "MaskedLM",
    "NeighbourTable",
    "NltkTagger",
    "StopWords",
    "UniversalSentenceEncoder",
    "Vocabulary",
    "WordVectors",
    "load_neighbours",
    "load_sentence_encoder",
    "load_stop_words",
    "load_tagger",
    "vocabulary_of",
]
