"""The paper: its figures, recipes that reproduce them, and reports that compare.

`published`, `headlines`, `risk`, `divergence` and `betas` are its figures and its arithmetic;
`reproduction` runs the recipes (``recipes/*.toml``); `report` makes a page of what they left;
`comparing` and `paired_figures` set two runs side by side.
"""
