"""What a model is worth: many settings of it measured, cascades, intervals and curves."""
