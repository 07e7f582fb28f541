"""Reproductions: recipes, and how they are run so that nothing is done twice.

`recipe` reads a recipe, `plan` gives each of its steps a place on disk, `perform` does one step and
`running` all of them.  A step is an ordinary ranmask command; this package knows no model and no
text, and is handed the function that runs a command.
"""
