"""``python -m ranmask.cli``: the ``ranmask`` command."""

from ranmask.cli.main import main

main()
