"""Attacks on classifiers: break it if you can.

`attack` runs a recipe against a victim and says what became of each text.  A module imports only
from those above it:

`tokenization` which parts of a text an attack may replace
`requests`     what a search asks while it runs
`attempt`      one text under attack, and the chances that it draws from
`outcome`      what became of a text: a versioned record
`victims`      what is attacked: plain, smoothed, any function
`constraints`  what a replacement must satisfy
`candidates`   where replacements come from
`recipe`       the declaration that ties them together
`ranking`      in which order words are attacked
`search`       how: greedy, several words at once, labels only, any words
`vocabulary`   words that may be put anywhere
`supplies`     resources and presets that recipes are made with
`recipes`      the recipes, one short file each
`engine`       many texts in lock-step
`summary`      Cln, Boa, Succ and the rest, over outcomes
`api`          `attack`: the whole in one call
`runs`         attacks over files, resumed
`textattack`   a wrapper for those who live there

`resources` (word lists, language models) stands below all of these; `adversarial_data` makes
training data of outcomes.
"""
