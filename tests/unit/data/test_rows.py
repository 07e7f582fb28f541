import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ranmask.data.rows import Columns, Row, file_rows
from ranmask.errors import DataError, OptionError


def rows_of(path, **columns):
    source = file_rows(path, Columns(**columns))
    rows = list(source.rows)
    assert len(rows) <= source.total
    return rows


def test_txt(tmp_path):
    path = tmp_path / "in.txt"
    path.write_bytes(b"\xef\xbb\xbfone text\r\n\nlast")
    assert rows_of(path) == [Row(1, "one text"), Row(2, ""), Row(3, "last")]


def test_csv_and_tsv(tmp_path):
    for suffix, mark in ((".csv", ","), (".tsv", "\t")):
        path = tmp_path / f"in{suffix}"
        path.write_text(
            f'id{mark}text{mark}label\n1{mark}"two\nlines, ""x"""{mark}pos\n\n2{mark}b{mark}1\n'
        )
        assert rows_of(path, label="label") == [
            Row(1, 'two\nlines, "x"', "pos", kept={"id": "1"}),
            Row(2, "b", "1", kept={"id": "2"}),
        ]


def test_csv_row_with_too_few_fields(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("id,text\n1,a\n2\n3,c\n")
    good, bad, last = rows_of(path)
    assert good.text == "a" and last.text == "c"
    assert bad == Row(2, None, None, "1 fields where the first line names 2")


def test_csv_with_an_open_quote(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text('text\na\n"never closed\n')
    with pytest.raises(DataError, match="line 3"):
        rows_of(path)


def test_jsonl(tmp_path):
    path = tmp_path / "in.jsonl"
    lines = [
        '{"text": "a", "label": 1}',
        "{broken",
        "",
        "[1]",
        '{"label": 0}',
        '{"text": 5, "label": 0}',
    ]
    path.write_text("\n".join(lines) + "\n")
    rows = rows_of(path, label="label")
    assert rows[0] == Row(1, "a", 1)
    assert [row.number for row in rows] == [1, 2, 4, 5, 6]
    assert "not valid JSON" in rows[1].error
    assert "JSON object" in rows[2].error
    assert "say which one holds the text" in rows[3].error
    assert "holds 5 (int), not text" in rows[4].error


def test_jsonl_of_plain_strings(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps("just a text") + "\n")
    assert rows_of(path) == [Row(1, "just a text")]


@pytest.mark.parametrize("rows", [1, 19, 20, 5000])
@pytest.mark.parametrize(
    ("line", "columns", "message"),
    [
        ({"body": "a", "label": 1}, {"text": "text"}, "no column 'text'; it has body, label"),
        ({"text": "a", "labels": 1}, {"label": "label"}, "no column 'label'; it has text, labels"),
        ({"body": "a", "label": 1}, {}, "has columns body, label: say which one"),
        ("a", {"text": "text"}, "expected a JSON object, not 'a'"),
    ],
)
def test_jsonl_whose_first_rows_are_all_wrong(tmp_path, rows, line, columns, message):
    path = tmp_path / "in.jsonl"
    path.write_text("\n" + (json.dumps(line) + "\n") * rows)
    with pytest.raises(DataError, match=f"row 2: .*in.jsonl: .*{message}"):
        rows_of(path, **columns)


def test_jsonl_that_is_none(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text("text,label\na film,1\n")
    with pytest.raises(DataError, match=r"row 1: .*not valid JSON"):
        rows_of(path)


def test_jsonl_with_one_good_row_among_the_first(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text('{"about": 1}\n' * 19 + '{"text": "a"}\n' + '{"about": 1}\n' * 30)
    rows = rows_of(path, text="text")
    assert [row.number for row in rows] == list(range(1, 51))
    assert [row.number for row in rows if row.error is None] == [20]


@pytest.mark.parametrize(
    ("name", "line", "shown"),
    [
        ("in.csv", "text;label", "'text;label': separate its columns by ',' instead of ';'"),
        ("in.csv", "text\tlabel", r"'text\\tlabel': separate its columns by ',' instead of '\\t'"),
        ("in.tsv", "text,label", r"'text,label': separate its columns by '\\t' instead of ','"),
    ],
)
def test_columns_that_something_else_separates(tmp_path, name, line, shown):
    path = tmp_path / name
    path.write_text(line + "\na film\n")
    for columns in ({}, {"label": "label"}):
        with pytest.raises(DataError, match=f"has one column, {shown}.*text_column"):
            rows_of(path, **columns)
    assert rows_of(path, text=line) == [Row(1, "a film")]


@pytest.mark.parametrize(
    ("header", "columns", "name"),
    [
        ("text,text,label", {}, "text"),
        ("body,label,label", {"text": "body", "label": "label"}, "label"),
        ("text,id,id", {}, "id"),
    ],
)
def test_two_columns_of_one_name(tmp_path, header, columns, name):
    path = tmp_path / "in.csv"
    path.write_text(header + "\na,b,c\n")
    with pytest.raises(DataError, match=f"has 2 columns '{name}': give each its own name"):
        rows_of(path, **columns)
    path.write_text("text,x,x\na,b,c\n")
    assert rows_of(path) == [Row(1, "a")]


def test_parquet(tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": ["a", None, "c"], "label": [0, 1, 2]}), path)
    rows = rows_of(path, label="label")
    assert rows[0] == Row(1, "a", 0) and rows[2] == Row(3, "c", 2)
    assert rows[1].error == "column 'text' is missing a value"


def test_nan_in_a_column(tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": [math.nan, 2.5]}), path)
    missing, number = rows_of(path)
    assert "missing" in missing.error and "holds 2.5 (float)" in number.error


def test_pairs(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text('{"premise": "p", "hypothesis": "h", "label": 2}\n')
    pair = ("premise", "hypothesis")
    assert rows_of(path, pair=pair, label="label") == [Row(1, ("p", "h"), 2)]


def test_text_column_is_found(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("review,label\nfine,1\n")
    assert rows_of(path, label="label") == [Row(1, "fine", "1")]
    with pytest.raises(DataError, match="text_column"):
        rows_of(path)
    assert rows_of(path, text="review") == [Row(1, "fine")]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_a_column_that_looks_like_labels_is_noticed(tmp_path, suffix):
    def unread(*names, **columns):
        path = tmp_path / f"in{suffix}"
        values = dict.fromkeys(names, "a")
        if suffix == ".parquet":
            pq.write_table(pa.table({name: [value] for name, value in values.items()}), path)
        elif suffix == ".jsonl":
            path.write_text(json.dumps(values))
        else:
            mark = {".csv": ",", ".tsv": "\t"}[suffix]
            path.write_text(f"{mark.join(names)}\n{mark.join(values.values())}\n")
        return file_rows(path, Columns(**columns)).unread_label

    assert unread("text", "label") == "label"
    assert unread("id", "Class", "text") == "Class"
    assert unread("text", "label", label="label") is None
    assert unread("text", "label", "class", label="class") is None
    assert unread("text", "label", keep=("label",)) is None
    assert unread("label", "target", text="label") == "target"
    assert unread("text", "label_noise") is None
    assert unread("label") is None  # the texts
    assert unread("id", "label") is None  # the texts, too


def test_columns_are_those_of_the_first_line_that_says_something(tmp_path):
    (tmp_path / "a.jsonl").write_text('\n{"text": "x", "label": 1}\n')
    (tmp_path / "b.csv").write_text('text,"a\nb",label\nx,y,1\n')
    for name in ("a.jsonl", "b.csv"):
        assert file_rows(tmp_path / name).unread_label == "label"


def test_files_without_columns_have_no_unread_labels(tmp_path):
    lines = ("label\n", '"label"\n', '{\n"x"', '3\n"x"')
    for name, content in zip(("a.txt", "b.jsonl", "c.jsonl", "d.jsonl"), lines, strict=True):
        (tmp_path / name).write_text(content)
        assert file_rows(tmp_path / name).unread_label is None


def test_missing_column_names_those_there_are(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("review,stars\nfine,1\n")
    with pytest.raises(DataError, match=r"no column 'text'; it has review, stars"):
        rows_of(path, text="text")


def test_wrong_encoding_is_told_row_by_row(tmp_path):
    for name, head in (("in.txt", b""), ("in.csv", b"text\n")):
        path = tmp_path / name
        path.write_bytes(head + "gut\nschön\nbesser\n".encode("latin-1"))
        first, second, third = rows_of(path)
        assert (first.text, third.text) == ("gut", "besser")
        assert "not valid UTF-8 (byte 0xf6)" in second.error


def test_utf_16_is_refused(tmp_path):
    path = tmp_path / "in.txt"
    path.write_bytes("text".encode("utf-16"))
    with pytest.raises(DataError, match="UTF-16"):
        rows_of(path)


@pytest.mark.parametrize("name", ["in.txt", "in.csv", "in.tsv", "in.jsonl"])
def test_binary_files_are_refused(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"PK\x03\x04 text,label\n" + bytes(range(256)) * 20)
    with pytest.raises(DataError, match="is a binary file, not text"):
        rows_of(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("in.xlsx", b"", "format"),
        ("in.parquet", b"not parquet", "parquet"),
        ("in.csv", b"", "empty"),
    ],
)
def test_unusable_files(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        rows_of(path)


def test_absent_file(tmp_path):
    with pytest.raises(DataError, match="No such file"):
        rows_of(tmp_path / "absent.txt")


def test_plain_text_has_no_columns(tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("a\n")
    with pytest.raises(DataError, match="no columns"):
        rows_of(path, label="label")


def test_text_and_pair_columns_exclude_each_other():
    with pytest.raises(OptionError, match="not both"):
        Columns(text="a", pair=("b", "c"))


class TestKeptColumns:
    @pytest.fixture
    def file(self, tmp_path):
        path = tmp_path / "in.csv"
        path.write_text("id,review,date,label\na7,good film,2020,1\nb2,,2021,0\n")
        return path

    def read(self, path, **columns):
        return list(file_rows(path, Columns(**columns)).rows)

    def test_an_id_is_always_kept(self, file):
        rows = self.read(file, text="review", label="label")
        assert [row.kept for row in rows] == [{"id": "a7"}, {"id": "b2"}]
        assert rows[0].kept_values() == {"id": "a7"}

    def test_others_are_kept_on_request(self, file):
        row, _ = self.read(file, label="label", keep=("date",))  # what is left is the text
        assert (row.text, row.kept_values()) == (
            "good film",
            {"id": "a7", "columns": {"date": "2020"}},
        )

    def test_rows_with_errors_keep_theirs(self, tmp_path):
        path = tmp_path / "in.jsonl"
        path.write_text(
            '{"id": 3, "text": null}\n{"id": 4, "text": "good", "x": [1]}\n{"text": "a"}\n'
        )
        rows = self.read(path)
        assert [row.kept for row in rows] == [{"id": 3}, {"id": 4}, {}] and rows[0].error

    def test_a_column_that_is_not_there(self, file):
        with pytest.raises(DataError, match="no column 'day'"):
            self.read(file, text="review", keep=("day",))

    def test_an_id_can_be_the_text(self, tmp_path):
        path = tmp_path / "in.csv"
        path.write_text("id\ngood film\n")
        [row] = self.read(path)
        assert row.text == "good film" and not row.kept

    def test_dates_of_a_table(self, tmp_path):
        import datetime

        import pyarrow
        from pyarrow import parquet

        path = tmp_path / "in.parquet"
        day = datetime.date(2020, 1, 2)
        parquet.write_table(pyarrow.table({"text": ["a"], "id": [7], "day": [day]}), path)
        [row] = self.read(path, keep=("day",))
        assert row.kept == {"id": 7, "day": "2020-01-02"}
