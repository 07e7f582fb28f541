"""A training run as people follow it on a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class TrainingLog:
    """Prints the lines of a training log as they come, each on one line."""

    def __init__(self, output: Path) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)
        self._output = output

    def __enter__(self) -> TrainingLog:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is KeyboardInterrupt:
            shown = f"interrupted: the same command resumes {self._output}"
            self._console.print(shown, highlight=False, markup=False, soft_wrap=True)

    def __call__(self, line: dict[str, Any]) -> None:
        """Print one line of the log."""
        if line["phase"] == "complete":
            shown = f"{self._output}: validation {_figures(line)}"
        elif "score" in line or "perplexity" in line:
            shown = f"{line['phase']} epoch {line['epoch']:g}: validation {_figures(line)}"
        else:
            place = f", step {line['step']} of {line['steps']}" if "step" in line else ""
            shown = f"{line['phase']} epoch {line['epoch']:g}{place}: loss {line['loss']:.4f}"
        self._console.print(shown, highlight=False, markup=False, soft_wrap=True)


def _figures(line: dict[str, Any]) -> str:
    if "perplexity" in line:
        return f"loss {line['validation_loss']:.4f}, perplexity {line['perplexity']:.2f}"
    shares = line["certified_accuracy"][1:9]
    accuracy = f"accuracy {line['accuracy']:.3f}"
    if not any(shares):  # as of a plain model, which proves nothing
        return accuracy
    return f"{accuracy}, CR@1... {' '.join(f'{value:.3f}' for value in shares)}"
