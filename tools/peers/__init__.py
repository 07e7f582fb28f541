"""Peers' own code on our texts: each module drives one published repository from a checkout.

Run in an environment of its own that has what the repository needs, with ranmask's ``src`` in
PYTHONPATH.  Nothing of a repository is copied here; weights are read as tensors, without running
what a pickle says.  Outcomes go to ``results/peers`` (`benchmarks.peers_records`).
"""
