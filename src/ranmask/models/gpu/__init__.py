"""Encoders of BERT's kind, computed at a GPU's pace: the same function as the model's own forward.

The path of a copy: kept set -> places of a table (`layout`) -> rows one after another, without
padding (`packing`) -> layers (`forward`, by PyTorch or `kernels`) -> logits (`scoring`).
`weights` finds the parts of a model; nothing here knows words or votes.
"""
