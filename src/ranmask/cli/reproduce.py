"""``ranmask reproduce``: parse, call, print."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranmask.cli.options import Device
from ranmask.errors import OptionError, OutputError

if TYPE_CHECKING:
    from ranmask.paper.reproduction.perform import RunCommand
    from ranmask.paper.reproduction.recipe import Recipe, Size

_ALL = "all"

Names = Annotated[
    list[str] | None,
    typer.Argument(
        help="Recipes, as sst2-certified; `all`; or the path of a .toml file.", show_default=False
    ),
]
Smoke = Annotated[
    bool, typer.Option("--smoke", help="The smallest size: half a minute on two CPU cores.")
]
Paper = Annotated[
    bool, typer.Option("--paper", help="The paper's own models and sizes: days, and a hub.")
]
Runs = Annotated[Path, typer.Option(help="Folder for all that is trained and measured.")]
Base = Annotated[
    str | None,
    typer.Option(
        help="Folder or hub id of the encoder that models are made from.",
        show_default="the recipe's",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Another setting, as texts=200; several.", show_default=False),
]
Jobs = Annotated[int, typer.Option(help="Steps that run at once, each in its own process.")]
Listing = Annotated[bool, typer.Option("--list", help="Say what recipes there are.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the commands, and run none.")]


def reproduce_by(run_command: RunCommand) -> Callable[..., None]:
    """The command ``reproduce``, whose steps are run by ``run_command``."""

    def reproduce(
        names: Names = None,
        smoke: Smoke = False,
        paper: Paper = False,
        runs: Runs = Path("runs"),
        base: Base = None,
        settings: Settings = None,
        jobs: Jobs = 1,
        device: Device = None,
        listing: Listing = False,
        dry_run: DryRun = False,
    ) -> None:
        """Make tables and figures of the paper: each step is a ranmask command.

        What is done is kept and shared between recipes; the same command again goes on.  Then:
        `ranmask report`.
        """
        if listing:
            _list()
            return
        if jobs < 1:
            raise OptionError(f"--jobs must be at least 1, not {jobs}")
        recipes = _recipes(names or [], smoke, paper, _overrides(settings, base))
        if dry_run:
            _print_plan(recipes, runs, device)
        else:
            _run(recipes, runs, run_command, jobs, device)

    return reproduce


def _recipes(names: list[str], smoke: bool, paper: bool, overrides: dict[str, Any]) -> list[Recipe]:
    from ranmask.paper.reproduction.recipe import load_recipe, recipe_names

    if not names:
        raise OptionError(f"name a recipe: {', '.join(recipe_names())}; or {_ALL}")
    if smoke and paper:
        raise OptionError("--smoke and --paper are two sizes: give one")
    size: Size = "smoke" if smoke else "paper" if paper else "default"
    every = [one for name in names for one in (recipe_names() if name == _ALL else [name])]
    chosen = list(dict.fromkeys(every))
    known = {name: load_recipe(name, size).settings for name in chosen}
    for key in overrides:
        if not any(key in settings for settings in known.values()):
            settings = ", ".join(dict.fromkeys(key for one in known.values() for key in one))
            raise OptionError(
                f"no recipe that was named has a setting {key!r}; there are {settings}"
            )
    recipes = [
        load_recipe(name, size, {key: overrides[key] for key in overrides if key in settings})
        for name, settings in known.items()
    ]
    for one, other in itertools.combinations(recipes, 2):
        if one.name == other.name:
            raise OptionError(f"two recipes are called {one.name!r}: rename a file")
    return recipes


def _overrides(settings: list[str] | None, base: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for setting in settings or []:
        key, equals, value = setting.partition("=")
        if not equals:
            raise OptionError(f"--set takes NAME=VALUE, not {setting!r}")
        try:
            found[key] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[key] = value  # a word without quotation marks
    if base is not None:
        found["base"] = str(Path(base).resolve()) if Path(base).is_dir() else base
    return found


def _run(
    recipes: list[Recipe], runs: Path, run_command: RunCommand, jobs: int, device: str | None
) -> None:
    from ranmask.cli.reproduce_printing import ReproductionDisplay
    from ranmask.paper.reproduction.plan import run_folder
    from ranmask.paper.reproduction.running import reproduce as run_recipes

    try:
        with ReproductionDisplay() as display:
            failed = run_recipes(
                recipes, runs, run_command, jobs=jobs, device=device, display=display
            )
    except KeyboardInterrupt:
        typer.echo("interrupted: the same command goes on", err=True)
        raise
    folders = " ".join(str(run_folder(recipe, runs)) for recipe in recipes)
    if failed:
        told = [f"{key}: {one.error}" for key, one in failed.items() if not one.blocked]
        blocked = len(failed) - len(told)
        others = f", and {blocked} that need them were not begun" if blocked else ""
        raise OutputError(
            f"{len(told)} of the steps failed ({'; '.join(told)}){others}. What is done is kept: "
            f"the same command tries again, and `ranmask report {folders}` shows what there is"
        )
    typer.echo(f"done; now: ranmask report {folders}", err=True)


def _list() -> None:
    from ranmask.paper.reproduction.recipe import load_recipe, recipe_names

    width = max(map(len, recipe_names()))
    for name in recipe_names():
        recipe = load_recipe(name)
        typer.echo(f"{name:<{width}}  {recipe.title} ({recipe.paper}; {len(recipe.steps)} steps)")


def _print_plan(recipes: list[Recipe], runs: Path, device: str | None) -> None:
    from ranmask.paper.reproduction.perform import finished
    from ranmask.paper.reproduction.plan import plan, shown_command

    seen: set[str] = set()
    for recipe in recipes:
        typer.echo(f"# {recipe.name} ({recipe.size}): {recipe.title}")
        for planned in plan(recipe, runs, device):
            done = "done  " if finished(planned) else "as above  " if planned.key in seen else ""
            typer.echo(f"{done}{shown_command(planned.step)}")
            seen.add(planned.key)
