"""What attacks know of language: each resource is an object that says what it is.

Nothing is downloaded in silence: a resource is read from a file or folder that is there, or the
error says how to get it.  Hugging Face models may be named by their hub id, which is to ask for a
download.  Every resource has ``description()``, plain JSON for the record of a result.

A module imports only from those above it:

`files`                       texts and digests
`nltk_files`                  where NLTK's data is
`stop_words`                  words that attacks leave alone
`tagging`                     parts of speech
`word_vectors`                neighbours by cosine
`neighbours`                  neighbours by name or file; tables of them
`checkpoints`                 Hugging Face models, loaded and run
`universal_sentence_encoder`  sentences as vectors: Google's release
`sentence_encoder`            sentences as vectors: Hugging Face, and the choice between them
`masked_lm`                   what a masked language model expects in each place
"""

from ranmask.attacks.resources.masked_lm import MaskedLM
from ranmask.attacks.resources.neighbours import Neighbours, NeighbourTable, load_neighbours
from ranmask.attacks.resources.sentence_encoder import (
    HuggingFaceSentenceEncoder,
    SentenceEncoder,
    load_sentence_encoder,
)
from ranmask.attacks.resources.stop_words import StopWords, load_stop_words
from ranmask.attacks.resources.tagging import NltkTagger, Tagger, load_tagger
from ranmask.attacks.resources.universal_sentence_encoder import UniversalSentenceEncoder
from ranmask.attacks.resources.word_vectors import WordVectors

__all__ = [
    "HuggingFaceSentenceEncoder",
    "MaskedLM",
    "NeighbourTable",
    "Neighbours",
    "NltkTagger",
    "SentenceEncoder",
    "StopWords",
    "Tagger",
    "UniversalSentenceEncoder",
    "WordVectors",
    "load_neighbours",
    "load_sentence_encoder",
    "load_stop_words",
    "load_tagger",
]
