"""`tools.same_results`: what counts as the same result, and what is called otherwise."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.same_results.__main__ import main
from tools.same_results.cases import REQUESTS, SERVERS, commands
from tools.same_results.normal import Table, differences, figures, normal
from tools.same_results.recording import INDEX, parsed

ROW = {"row": 1, "label": "World", "radius": 2, "votes": [3, 1], "assumes": ["a", "b"]}
FAILED = {"row": 2, "text": " ", "error": "no words"}


def same(old, new, table=None, names=("old", "new")):
    table = table or Table()
    before, after = normal(old, table, names[0]), normal(new, table, names[1])
    return [path for path, *_ in differences(before, after)]


def test_every_number_counts():
    assert same([ROW], [dict(ROW)]) == []
    assert same([ROW], [{**ROW, "radius": 3}]) == ["/0/radius"]
    assert same([ROW], [{**ROW, "radius": None}]) == ["/0/radius"]
    assert same([ROW], [{**ROW, "votes": [1, 3]}]) == ["/0/votes/0", "/0/votes/1"]
    assert same({"score": 0.3}, {"score": 0.1 + 0.2}) == ["/score"]
    assert same({"guarantee": True}, {"guarantee": 1}) == ["/guarantee"]
    assert same({"score": float("nan")}, {"score": float("nan")}) == []


def test_order_length_and_keys_count():
    assert same([1, 2], [2, 1]) == ["/0", "/1"]
    assert same([ROW, FAILED], [ROW]) == ["/length"]
    assert same(ROW, {**ROW, "more": 0}) == ["/more"]
    assert same({**ROW, "more": 0}, ROW) == ["/more"]


def test_times_places_and_wording_do_not_count():
    assert same({"seconds": 1, "exit": 0}, {"seconds": 2, "exit": 0}) == []
    assert same(FAILED, {**FAILED, "error": "there are no words"}) == []
    assert same(FAILED, {**FAILED, "error": None}) == ["/error"]
    assert same({"explanation": ["a", "b"]}, {"explanation": ["c"]}) == []
    assert same({"error": {"code": "a"}}, {"error": {"code": "b"}}) == ["/error/code"]


def test_of_text_for_people_the_numbers_count():
    text = "accuracy 0.91 of 1,000 texts\n| keep2 | 12 % | -3 | 8.3 s |"
    assert figures(text) == ["0.91", "1,000", "12", "-3"]
    assert figures(text, tables_only=True) == ["12", "-3"]
    assert same({"stdout": "radius 2"}, {"stdout": "proved: 2 words"}) == []
    assert same({"stdout": "radius 2"}, {"stdout": "radius 3"}) == ["/stdout/0"]
    page = {"files": {"r.md": "In 2021:\n| a | 5 |"}}
    assert same(page, {"files": {"r.md": "Since 2022:\n| a | 5 |"}}) == []
    assert same(page, {"files": {"r.md": "In 2021:\n| a | 6 |"}}) == ["/files/r.md/0"]


def test_old_names_are_renamed_and_new_ones_left_alone():
    table = Table(
        keys={"MCB": "median_radius"},
        moves={"classifier.options": "options"},
        values={"old sentence": "new sentence"},
        files={".run.json": ".summary.json", ".old": ""},
    )
    old = {
        "files": {
            "a.run.json": {"MCB": 2, "classifier": {"kind": "x", "options": {"keep": 1}}},
            "a.old": "(there)",
        },
        "assumes": ["old sentence", "another"],
    }
    new = {
        "files": {
            "a.summary.json": {"median_radius": 2, "classifier": {"kind": "x"}}
            | {"options": {"keep": 1}}
        },
        "assumes": ["new sentence", "another"],
    }
    assert same(old, new, table) == []
    assert same(old, old, table, ("old", "old")) == []
    assert same(new, new, table, ("new", "new")) == []
    assert same(old, old, table) != []


HEADER = {
    "marked_by": "format",
    "constants": "constants",
    "last": "finished",
    "rows_with": ["label"],
}


def test_a_header_is_put_back_into_its_rows():
    table = Table(header=HEADER)
    first = {"format": "ranmask-results", "constants": {"assumes": ["a", "b"]}}
    short = {key: value for key, value in ROW.items() if key != "assumes"}
    old, new = [ROW, FAILED, ROW], [first, short, FAILED, short]
    assert same({"files": {"o.jsonl": old}}, {"files": {"o.jsonl": new}}, table) == []
    assert same({"stdout": old}, {"stdout": new}, table) == []
    other = [first, {**short, "assumes": ["a"]}, FAILED, short]
    assert same(old, other, table) == ["/0/assumes/length"]
    wrong = [{**first, "constants": {"assumes": ["c", "b"]}}, short, FAILED, short]
    assert same(old, wrong, table) == ["/0/assumes/0", "/2/assumes/0"]
    assert same(old, [first, FAILED, short], table)[0] == "/length"


def test_a_header_may_stand_for_a_file():
    table = Table(header={**HEADER, "file": ".run.json"})
    record = {"format": "r", "seed": 0, "finished": {"rows": 1}}
    old = {"files": {"o.jsonl": [ROW], "o.jsonl.run.json": record}}
    first, last = {"format": "r", "seed": 0, "constants": {}}, {"finished": {"rows": 1}}
    assert same(old, {"files": {"o.jsonl": [first, ROW, last]}}, table) == []
    other = {"files": {"o.jsonl": [{**first, "seed": 1}, ROW, last]}}
    assert same(old, other, table) == ["/files/o.jsonl.run.json/seed"]
    assert same(old, {"files": {"o.jsonl": [first, ROW]}}, table) != []


def test_options_are_renamed_by_command():
    table = Table(
        options={
            "all": {"--output": "--out"},
            "attack": {"--texts": "--rows", "--engine ray": "--on cluster", "--engine": "--on"},
        }
    )
    line = ["attack", "--texts", "3", "--engine", "ray", "--output", "--texts.jsonl"]
    assert table.command(line) == (
        ["attack", "--rows", "3", "--on", "cluster", "--out", "--texts.jsonl"]
    )
    assert table.command(["attack", "--engine", "local"]) == ["attack", "--on", "local"]
    assert table.command(["certify", "--texts"]) == ["certify", "--texts"]


def test_the_committed_table_is_read():
    assert isinstance(Table.read(), Table)


def test_cases_have_names_of_their_own():
    for group, cases in commands(long=True).items():
        names = [name for name, _ in cases]
        assert len(set(names)) == len(names), group
        assert all(line for _, line in cases), group
    assert set(SERVERS) == set(REQUESTS)


def test_json_lines_stay_lines():
    assert parsed('{"a": 1}\n') == [{"a": 1}]
    assert parsed('{"a": 1}\n', whole=True) == {"a": 1}
    assert parsed('{\n"a": 1\n}\n') == {"a": 1}
    assert parsed("accuracy 1.0 of 3 texts\n") == "accuracy 1.0 of 3 texts\n"


@pytest.fixture
def recorded(tmp_path):
    def write(name, groups, names="old"):
        folder = tmp_path / name
        for group, cases in groups.items():
            (folder / group).mkdir(parents=True)
            for number, (case, record) in enumerate(cases.items()):
                text = json.dumps({"case": case, **record})
                (folder / group / f"{number}.json").write_text(text)
        (folder / INDEX).write_text(json.dumps({"names": names, "groups": list(groups)}))
        return str(folder)

    return write


def test_compare_says_what_differs(recorded, capsys):
    old = recorded("old", {"g": {"a": {"exit": 0}, "b": {"exit": 1}}, "long": {"c": {"exit": 0}}})
    new = recorded("new", {"g": {"a": {"exit": 0}, "b": {"exit": 2}}})
    assert main(["compare", old, old]) == 0
    assert capsys.readouterr().out == "3 cases, 3 equal, 0 different\n"
    assert main(["compare", old, new]) == 1
    assert capsys.readouterr().out == (
        "g/b/exit\n  old: 1\n  new: 2\n2 cases, 1 equal, 1 different\n"
        "not compared, recorded once only: long\n"
    )


def test_a_case_that_is_gone_differs(recorded, capsys):
    old = recorded("old", {"g": {"a": {"exit": 0}, "b": {"exit": 0}}})
    new = recorded("new", {"g": {"a": {"exit": 0}}})
    assert main(["compare", old, new]) == 1
    assert "2 cases, 1 equal, 1 different" in capsys.readouterr().out


def test_what_may_differ_is_said_in_the_table(recorded, tmp_path, capsys):
    old, new = (recorded(name, {"g": {"a": {"exit": ord(name)}}}) for name in "on")
    table = tmp_path / "table.toml"
    table.write_text('[[ignored]]\npath = "g/*/exit"\nwhy = "a test"\n')
    assert main(["compare", old, new, "--table", str(table)]) == 0
    assert main(["compare", old, new, "--only", "nothing"]) == 1
