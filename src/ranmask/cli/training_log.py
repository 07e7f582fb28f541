"""A training run as people follow it on a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ranmask.cli.detect_printing import detector_figures, rate_lines
from ranmask.cli.terminal import say
from ranmask.metrics import aligned, class_lines, headline, poisoned_table

_ADVICE = (
    "Train on more rows or for more epochs, with another --learning-rate, or with "
    "--class-weights balanced (docs/training.md)"
)
_WORTH_SAYING = 10  # seconds


class TrainingLog:
    """Prints the lines of a training log as they come, each on one line.

    At the end it says what was measured, by class, and warns of a model that is not worth using.
    ``beats_majority``: whether the finished model beats naming the largest class always; None where
    that was not asked, as of a language model.
    """

    def __init__(self, output: Path) -> None:
        self._output = output
        self.beats_majority: bool | None = None

    def __call__(self, line: dict[str, Any]) -> None:
        """Print one line of the log."""
        if "false_positives" in line:
            say(f"{self._output}: validation {detector_figures(line)}", *rate_lines(line))
            if "too_few" in line:
                say(f"warning: {line['too_few']}")
            return
        if line["phase"] == "complete":
            say(f"{self._output}: validation {_figures(line)}")
            if "classes" in line:
                self._say_classes(line)
            return
        if "score" in line or "perplexity" in line:
            say(f"{line['phase']} epoch {line['epoch']:g}: validation {_figures(line)}")
        elif "loss" not in line:
            say(f"{line['phase']}: {line['epoch']} of {line['epochs']} tables are trained")
        else:
            place = f", step {line['step']} of {line['steps']}" if "step" in line else ""
            loss = "is no number" if line["loss"] is None else f"{line['loss']:.4f}"
            told = f"{line['phase']} epoch {line['epoch']:g}{place}: loss {loss}"
            say(told + _time_left(line))

    def _say_classes(self, line: dict[str, Any]) -> None:
        say(*class_lines(line["classes"]))
        if "poisoned" in line:
            say(*aligned(*poisoned_table(line["poisoned"])))
        self.beats_majority = line["beats_majority"]
        if not self.beats_majority:
            say(
                "warning: this model is no better than naming the largest class for every text: "
                f"accuracy {line['accuracy']:.3f} against {line['majority']:.3f}, balanced "
                f"accuracy {line['balanced_accuracy']:.3f}. {_ADVICE}"
            )
            return
        guessed = 1 / len(line["classes"])
        missed = [found for found in line["classes"] if found["recall"] < guessed]
        if missed:
            worst = min(missed, key=lambda found: found["recall"])
            say(
                f"warning: the class {worst['name']} is found less often than by guessing: recall "
                f"{worst['recall']:.3f}, {len(missed)} such of {len(line['classes'])} classes. "
                f"{_ADVICE}"
            )


def _time_left(line: dict[str, Any]) -> str:
    """How long the steps of this phase may still take, where that is worth saying."""
    if "step" not in line:
        return ""
    from ranmask.runs.cost import duration

    seconds = line["seconds"] / line["step"] * (line["steps"] - line["step"])
    return f", about {duration(seconds)} left" if seconds >= _WORTH_SAYING else ""


def _figures(line: dict[str, Any]) -> str:
    if "perplexity" in line:
        return f"loss {line['validation_loss']:.4f}, perplexity {line['perplexity']:.2f}"
    shares = line["certified_accuracy"][1:9]
    accuracy = f"accuracy {line['accuracy']:.3f} {headline(line)}"
    if not any(shares):  # as of a plain model, which proves nothing
        return accuracy
    throughout = f", all words at once {line['all_words']:.3f}" if "all_words" in line else ""
    return f"{accuracy}, CR@1... {' '.join(f'{value:.3f}' for value in shares)}{throughout}"
