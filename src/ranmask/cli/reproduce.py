"""``ranmask reproduce``: parse, call, print."""

from __future__ import annotations

import datetime
import itertools
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranmask.cli.command import Given, command
from ranmask.cli.terminal import say
from ranmask.data.inventory import lacking
from ranmask.data.known import KNOWN
from ranmask.data.origins import data_places
from ranmask.errors import DataError, OptionError, OutputError, suggestion
from ranmask.options import DEVICE
from ranmask.options.fields import Checked, option
from ranmask.paper.reproduction.perform import finished
from ranmask.paper.reproduction.plan import Planned, chosen, plan, run_folder, workload
from ranmask.paper.reproduction.recipe import MODELS, Recipe, Size, load_recipe, recipe_names
from ranmask.paper.reproduction.running import reproduce as run_recipes

_ALL = "all"


@dataclass(frozen=True, kw_only=True)
class ReproduceCommand(Checked, group="Reproduction"):
    """Which recipes are followed, at which size."""

    names: tuple[str, ...] = option(
        "Recipes, as sst2-certified; `all`; or the path of a .toml file.", (), positional=True
    )
    smoke: bool = option("The smallest size: from seconds to minutes on two CPU cores.", False)
    paper: bool = option("The paper's own models and sizes: days on a GPU, and a hub.", False)
    runs: Path = option("Folder for models, results and logs.", Path("runs"))
    base: str | None = option(
        "Folder or hub id of the encoder that models are made from.", unset="the recipe's"
    )
    settings: tuple[str, ...] = option(
        "Change a setting, as seed=1; may be given several times. Each variant has its own record.",
        (),
        flag="set",
        repeated=True,
    )
    seeds: int = option(
        "Run this many seeds, from the recipe's own on; each has its own record.",
        1,
        least=1,
        most=1000,
    )
    steps: str | None = option(
        "Only steps whose names match, as '*-pgd-*', and what they need; several with commas.",
        unset="all of a recipe",
    )
    jobs: int = option("Steps that run at once, each in its own process.", 1, least=1)
    device: str | None = DEVICE()
    listing: bool = option("List the recipes.", False, flag="list")
    dry_run: bool = option("Print the commands, and run none.", False)


@command(ReproduceCommand)
def reproduce(given: Given) -> None:
    """Make tables and figures of the paper: each step is a ranmask command.

    What is done is kept and shared between recipes; the same command again goes on.  Then:
    `ranmask report`.

    Example: ranmask reproduce sst2-certified --smoke
    """
    asked = given.build(ReproduceCommand)
    if asked.listing:
        _list()
        return
    recipes = _recipes(asked)
    left = _left(recipes, asked)
    _check_commands(left)
    if asked.dry_run:
        _print_plan(recipes, asked)
        _say_cost(left)
    else:
        _check_data(left)
        _say_cost(left)
        _run(recipes, asked)


def _recipes(asked: ReproduceCommand) -> list[Recipe]:
    overrides = _overrides(asked.settings, asked.base)
    if not asked.names:
        raise OptionError(f"name a recipe: {', '.join(recipe_names())}; or {_ALL}")
    if asked.smoke and asked.paper:
        raise OptionError("--smoke and --paper are two sizes: give one")
    size: Size = "smoke" if asked.smoke else "paper" if asked.paper else "default"
    every = [
        other for name in asked.names for other in (recipe_names() if name == _ALL else [name])
    ]
    chosen = list(dict.fromkeys(every))
    known = {name: load_recipe(name, size).written for name in chosen}
    for key in overrides:
        if not any(key in settings for settings in known.values()):
            settings = dict.fromkeys(name for one in known.values() for name in one)
            raise OptionError(
                f"no recipe that was named has a setting {key!r}.{suggestion(key, settings)} "
                f"There are {', '.join(settings)}"
            )
    own = {
        name: {key: overrides[key] for key in overrides if key in settings}
        for name, settings in known.items()
    }
    recipes = [load_recipe(name, size, own[name]) for name in known]
    for key, value in overrides.items():
        if not any(key in recipe.used for recipe in recipes):
            say(f"no step uses the setting {key}: {key}={value} changes nothing")
    for one, other in itertools.combinations(recipes, 2):
        if one.name == other.name:
            raise OptionError(f"two recipes are called {one.name!r}: rename a file")
    others = [
        load_recipe(name, size, own[name] | {"seed": recipe.settings["seed"] + more})
        for more in range(1, asked.seeds)
        for name, recipe in zip(known, recipes, strict=True)
        if "seed" in recipe.settings  # else it draws nothing
    ]
    return [*recipes, *others]


def _overrides(settings: Sequence[str], base: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise OptionError(f"--set takes NAME=VALUE, not {setting!r}")
        if key in found:
            raise OptionError(f"--set {key} is given twice: leave one of them out")
        try:
            found[key] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[key] = value  # a word without quotation marks
        if isinstance(found[key], datetime.date | datetime.time):
            found[key] = value
    if base is not None:
        found["base"] = base
    for key in MODELS & found.keys():
        if Path(str(found[key])).is_dir():
            found[key] = str(Path(str(found[key])).resolve())
    return found


def _run(recipes: list[Recipe], asked: ReproduceCommand) -> None:
    from ranmask.cli.main import run_command
    from ranmask.cli.reproduce_printing import ReproductionDisplay

    try:
        with ReproductionDisplay() as display:
            failed = run_recipes(
                recipes,
                asked.runs,
                run_command,
                steps=asked.steps,
                jobs=asked.jobs,
                device=asked.device,
                display=display,
            )
    except KeyboardInterrupt:
        say("interrupted: the same command goes on")
        raise
    folders = " ".join(str(run_folder(recipe, asked.runs)) for recipe in recipes)
    if failed:
        told = [f"{key}: {one.error}" for key, one in failed.items() if not one.blocked]
        blocked = len(failed) - len(told)
        others = f", and {blocked} that need them were not begun" if blocked else ""
        raise OutputError(
            f"{len(told)} of the steps failed ({'; '.join(told)}){others}. What is done is kept: "
            f"the same command tries again, and `ranmask report {folders}` shows what there is"
        )
    say(f"done; now: ranmask report {folders}")


def _left(recipes: list[Recipe], asked: ReproduceCommand) -> list[Planned]:
    """The steps that are still to be done, each once."""
    every = {step.key: step for recipe in recipes for step in plan(recipe, asked.runs)}
    wanted = chosen(list(every.values()), asked.steps)
    return [step for key, step in every.items() if key in wanted and not finished(step)]


def _say_cost(left: Sequence[Planned]) -> None:
    """What is left to do, before it is begun."""
    if cost := workload(left):
        say(f"to do: {cost}")


def _check_commands(left: Sequence[Planned]) -> None:
    """Refuse, before a step begins, options that its command refuses: a setting may be wrong.

    They are checked one by one, so a command is passed over where others have all of its own.
    """
    from ranmask.cli.main import check_command

    seen: set[tuple[str, str, str]] = set()
    for planned in left:
        command, *options = planned.step.words  # without places: those differ everywhere
        pairs = {(command, *pair) for pair in itertools.pairwise([*options, ""])}
        if pairs <= seen:
            continue
        try:
            check_command(planned.words)
        except OptionError as error:
            raise OptionError(f"the step {planned.title} cannot be run: {error}") from error
        seen |= pairs


def _check_data(left: Sequence[Planned]) -> None:
    """Refuse, before a step begins, to run steps whose data sets or tables are not here."""
    from ranmask.attacks.resources.neighbours import KNOWN as TABLES
    from ranmask.attacks.resources.neighbours import known_file

    read: dict[tuple[str, str], None] = {}  # splits of corpora, each once
    tables: dict[str, None] = {}
    for step in left:
        given = dict(itertools.pairwise(step.words))
        if (name := given.get("--data")) in KNOWN:
            training = step.step.measures == "training"
            splits = ("train", "validation") if training else (given.get("--split", "test"),)
            read |= dict.fromkeys((name, split) for split in splits)
        if (name := given.get("--neighbours")) in TABLES:
            tables[name] = None
    try:
        missing = lacking(read)
    except DataError as error:  # RANMASK_DATA is no folder
        names = ", ".join(dict.fromkeys(name for name, _ in read))
        raise DataError(f"the steps read {names}: {error}") from error
    for name in tables:
        try:
            known_file(name)
        except DataError:
            missing[name] = [f"synonyms/{TABLES[name]}"]
    if missing:
        listed = "; ".join(f"{name} ({', '.join(files)})" for name, files in missing.items())
        looked = " and ".join(map(str, data_places()))
        raise DataError(
            f"data that the steps read is not here: {listed}. Looked in {looked}: put it there, or "
            "set RANMASK_DATA to the folder that holds it. Where to get it: `ranmask data list` "
            "for corpora, docs/attacks.md for synonyms"
        )


def _list() -> None:
    width = max(map(len, recipe_names()))
    for name in recipe_names():
        recipe = load_recipe(name)
        print(f"{name:<{width}}  {recipe.title} ({recipe.paper}; {len(recipe.steps)} steps)")


def _print_plan(recipes: list[Recipe], asked: ReproduceCommand) -> None:
    plans = [plan(recipe, asked.runs, asked.device) for recipe in recipes]
    wanted = chosen([step for steps in plans for step in steps], asked.steps)
    seen: set[str] = set()
    for recipe, steps in zip(recipes, plans, strict=True):
        print(f"# {recipe.folder_name} ({recipe.size}): {recipe.title}")
        for planned in steps:
            if planned.key not in wanted:
                continue
            done = "done  " if finished(planned) else "as above  " if planned.key in seen else ""
            print(f"{done}{planned.step.command}")
            seen.add(planned.key)
