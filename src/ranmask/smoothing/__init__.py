"""From a text to a certificate: copies of the text vote, and their votes prove a radius.

    words -> masks -> model -> votes -> certificate -> result

`masks`      which masked copies of a text vote
`voting`     what every way of smoothing shares: copies are scored, counted and named, in batches
`smoothed`   `SmoothedClassifier`: votes over masked copies
`synonyms`   the same with synonyms for masks (SAFER)
`interface`  what commands need of a classifier
`cascade`    plain for clean texts, smoothed for those that a detector suspects
`store`      a model by its name or folder
`detectors`  what is flagged stays flagged: words, segments; `window_detector` asks any model,
             `detector_store` loads

Votes, and what they prove, are in `ranmask.certificates`.
"""
