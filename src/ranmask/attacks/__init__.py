"""Attacks on classifiers: break it if you can.

`api.attack` runs a recipe against a victim and says what became of each text:

`tokenization` which words of a text an attack may change
`steps`        what a search asks while it runs
`replacements`, `edits`, `constraints`, `search`  the parts of a `recipe`
`published`    the recipes of others; `recipes` has all by name
`directed`, `population`  searches for any recipe; `searches` by name
`white_box`    what an attacker knows who owns the victim
`resources`    what attacks know of language: word lists, synonyms, language models
`victims`      what is attacked: plain, smoothed, any function
`loop`         many texts in lock-step
`outcome`      what became of a text, and of many
`runs`         attacks over files, resumed; `adversarial_data` makes training data of them
`appending`    harmless words are appended until a text is not flagged
`textattack`   a wrapper for those who live there
"""
