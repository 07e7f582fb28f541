"""What is shown a copy: a function, a word table, an encoder, a blend; ``shipped`` has weights."""

from pathlib import Path

SHIPPED_FOLDER = Path(__file__).parent / "shipped"
"""Where the models lie that come with ranmask."""

SYNONYM_SET_SIZE = 100
"""Most words that may take a word's place in a random copy, unless another number is given."""
