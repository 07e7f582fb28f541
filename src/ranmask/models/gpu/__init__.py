"""Encoders of BERT's kind, computed at a GPU's pace: the same function as the model's own forward.

The path of a copy: kept set -> places of a table (`layout`) -> rows one after another, without
padding (`packing`) -> layers (`forward`, by `operations` or `kernels`) -> logits (`scoring`).
`weights` finds the parts of a model, `select` what computes it; nothing here knows words or votes.
"""
