"""The ``ranmask`` command."""

import sys


def main() -> None:
    """Run it.  Ctrl-C ends it without a traceback, also while it is still being imported."""
    try:
        from ranmask.cli.main import main as command
    except KeyboardInterrupt:
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
