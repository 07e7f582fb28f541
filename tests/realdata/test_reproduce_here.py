"""The first thing that a newcomer runs, on real data; skipped where the data is not there."""

import pytest

from ranmask.cli.main import run_command
from ranmask.data import data_folder
from ranmask.paper.reading import read


def test_the_smallest_reproduction_shows_certificates_worth_having(tmp_path, capsys):
    folder = data_folder()
    if folder is None or not (folder / "sst2").is_dir():
        pytest.skip("no data: set RANMASK_DATA to the folder that holds sst2/")
    command = ["reproduce", "sst2-certified", "--smoke", "--runs", str(tmp_path)]
    assert run_command(command) == 0, capsys.readouterr().err
    steps = read(tmp_path / "sst2-certified-smoke").steps
    results = {step.place["rate"]: step.result for step in steps if step.place}
    for rate in (0.7, 0.8):
        exact = results[rate].readings[0]
        assert exact.certificate == "exact" and exact.guarantee
        assert sum(exact.correct) >= 0.7 * len(exact.correct)  # 0.78 and more; chance is 0.51
        radii = [radius for radius, right in zip(exact.radius, exact.correct, strict=True) if right]
        assert sum(bool(radius) for radius in radii) >= 0.15 * len(exact.correct)
    (examples,) = (step.result for step in steps if step.measures == "examples")
    assert any(line["radius"] for line in examples.lines)
