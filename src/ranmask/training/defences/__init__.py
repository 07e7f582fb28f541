"""The defences that the paper compares, trained by one command: ``ranmask train --defence NAME``.

All of them are `ranmask.training` with what they change of `training.defence.Defence` overridden,
so that each file here holds what its method does differently, and nothing else:

============  =====================================================================
``none``      `training.defence`: plain training, on whole texts
``ranmask``   `training.masking`: words are hidden; the smoothed label is certified
``pgd``       `pgd`: the loss at the worst point that gradient ascent finds near the embeddings
``freelb``    `freelb`: the mean loss along such an ascent, at the price of the ascent alone
``hotflip``   `hotflip`: half of the loss on copies whose words were flipped by the gradient
``dne``       `dne`: the loss at the worst point in the convex hulls of the words' synonyms
``augment``   `augment`: texts that were attacked are added to the training set
``safer``     `safer`: words are replaced by random synonyms; the smoothed label is certified
============  =====================================================================

``ranmask+pgd``, ``ranmask+freelb``, ``ranmask+hotflip``, ``ranmask+dne`` and ``ranmask+augment``
do both: what they learn from is masked, and the certificate is that of ``ranmask``.

`perturbing` (balls around embeddings) and `word_tokens` (which tokens are words) serve several;
`attacked_half` and `victim` are the first steps of ``augment``; `building` finds a defence by name.
**None of them but** ``ranmask`` **and** ``safer`` **proves anything.**
"""
