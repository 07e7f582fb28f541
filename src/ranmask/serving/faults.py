"""Why a request is not answered, though nothing is wrong with its texts or options.

    ServingFault
    ├── UnknownModel      no model of that name is served
    ├── Busy              too many copies wait; ``seconds`` says when to come again
    ├── Closing           the service is about to end
    ├── Cancelled         whoever asked has gone away
    └── DeadlinePassed    the request took longer than it may

They are no `RanmaskError`: a command line never meets them.
"""

from __future__ import annotations

from collections.abc import Sequence


class ServingFault(Exception):  # noqa: N818 - of the moment: nobody made an error
    """Base of the tree: catch this to catch every refusal of the service itself."""


class UnknownModel(ServingFault):
    """No model of that name is served."""

    def __init__(self, name: str, served: Sequence[str]) -> None:
        super().__init__(f"no model {name!r} is served here; there are {', '.join(served)}")


class Busy(ServingFault):
    """Too much is waiting already.  ``seconds`` is an estimate of when there will be room."""

    def __init__(self, waiting: int, seconds: float) -> None:
        super().__init__(f"{waiting} masked copies are waiting: try again in {seconds:.1f} seconds")
        self.seconds = seconds


class Closing(ServingFault):
    """The service is shutting down and takes no more work."""

    def __init__(self) -> None:
        super().__init__("the service is shutting down: send the request to another one, or later")


class Cancelled(ServingFault):
    """The request was cancelled; what was not computed yet never will be."""

    def __init__(self) -> None:
        super().__init__("the request was cancelled")


class DeadlinePassed(ServingFault):
    """The request's time is over; what was not computed yet never will be."""

    def __init__(self) -> None:
        super().__init__(
            "the request took longer than it may: send fewer or shorter texts, or ask for fewer "
            "masks"
        )
