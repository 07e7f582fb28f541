"""What is shown a copy: a function, a word table, an encoder, a blend; ``shipped`` has weights."""
