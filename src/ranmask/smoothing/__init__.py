"""From a text to a certificate: copies of the text vote, and their votes prove a radius.

A module imports only from those above it:

`interface`   what commands need of a classifier
`votes`       scores to integers, and how far they may move
`masks`       which masked copies of a text vote
`scoring`     how copies are scored, whatever smooths them
`certifying`  how each certificate reads the votes
`margins`     how much a certificate has left after each changed word
`smoothed`    `SmoothedClassifier`: votes over masked copies
`synonyms`    the same with synonyms for masks (SAFER)
`cascade`     plain for clean texts, smoothed for those that a detector suspects
`store`       a model by its name or folder
"""
