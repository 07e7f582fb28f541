"""Is ranmask's attack engine TextAttack's?  Both attack the same texts, and every step is compared.

`made_up`   texts, and strings that are hard to cut
`common`    what both sides are given: a victim, word vectors, a language model, chances
`theirs`    what TextAttack does: runs in an environment of its own and knows no ranmask
`ours`      what ranmask does
`compare`   where the two differ, and why
`wrapped`   a smoothed classifier, attacked through the wrapper and by ranmask
`__main__`  ``python -m tools.textattack_parity --theirs PYTHON``: the whole, and its record

A *trace* of one attack holds the words, the words that may be attacked, their scores and order,
the replacements that were tried at each word, the number of queries, and the outcome.
"""
