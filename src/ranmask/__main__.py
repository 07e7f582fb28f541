"""``python -m ranmask``: the ``ranmask`` command."""

from ranmask.cli.__main__ import main

main()
