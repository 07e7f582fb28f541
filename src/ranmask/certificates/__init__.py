"""From votes to a proved radius: integers and fractions, no torch, no text.

`kept`      how many words a copy shows; no numpy
`families`  which kept sets vote: they follow from the number of words only
`votes`     what copies say, as integers
`exact`     a proof over a fixed family of kept sets (the default)
`distinct`  the same, where each distinct word counts once
`threats`   what an attacker may do, and what a step of it costs
`threat_radii`  how far each of these is proved, for many texts at once
`sampled`   Levine & Feizi's bound on a random sample, right with probability 1 - alpha; and the
            published algorithms, for comparison, without a guarantee; `paper` has their beta
`deletion`  CERT-ED's: votes over copies that lack words at random, for edit distance
`safer`     votes over random synonyms; covers replacements from a table only
`detectors` what is flagged stays flagged: windows, and words with weights of at least 0
`partitions` poisoned training texts and changed words, of classifiers trained apart
`margins`   how much of a proof is left after each changed word
`assumed`   what each certificate rests on, in words
"""
