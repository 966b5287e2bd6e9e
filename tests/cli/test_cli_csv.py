"""CSV of other forms: delimiters, headers, encodings, and errors that name the line."""

import json
import os
import zlib
from pathlib import Path

import pytest

import tfwire as tfw
from helpers.command import tfwire_main


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def convert(data, *words, name="in.csv", status=0, out="out.jsonl"):
    """The report of a conversion of these bytes, or what it says on stderr."""
    with open(name, "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
    result = tfwire_main("convert", name, "-o", out, "--force", "--json", *words)
    assert status == result.returncode, result.stderr.decode()
    return json.loads(result.stdout) if status == 0 else result.stderr.decode()


def rows():
    with open("out.jsonl", "rb") as file:
        return [json.loads(line) for line in file]


ROWS = [{"id": 1, "x": "a b"}, {"id": 3, "x": "c"}]


@pytest.mark.parametrize(
    ("delimiter", "words"),
    [
        (";", ["--delimiter", ";"]),
        ("|", ["--delimiter=|"]),
        ("\t", ["--delimiter", "tab"]),
        ("\t", ["--delimiter", r"\t"]),
        ("\t", ["--delimiter", "\t"]),
        ("é", ["--delimiter", "é"]),
        (" ", ["--delimiter", " "]),
        (",", []),
        (",", ["--header"]),
    ],
)
def test_the_delimiter_is_read_and_written(delimiter, words):
    text = "id,x\n1,'a b'\n3,c\n".replace("'", '"').replace(",", delimiter)
    assert [] == convert(text, *words)["lost"]
    assert ROWS == rows()
    tfw.write_records("in.tfrecord", ROWS)
    assert 0 == tfwire_main("convert", "in.tfrecord", "-o", "new.csv", *words).returncode
    with open("new.csv", encoding="utf-8") as file:
        assert text.replace('"', "" if delimiter != " " else '"') == file.read()


@pytest.mark.parametrize("cell", ["123456789.123", "9007199254740993", "1e39", "1e400"])
def test_numbers_that_float32_changes_are_told(cell):
    out = "new.tfrecord"
    assert ["'x': numbers are rounded to float32"] == convert(f"x\n{cell}\n1.5\n", out=out)["lost"]
    assert [] == convert("x\n0.1\n3\ninf\n", out=out)["lost"]


def test_what_numpy_and_pandas_write_for_floats_that_are_not_finite():
    text = "x,y\ninf,nan\n-inf,Infinity\n,2\n1.5,-Infinity\nNaN,inf\n"
    convert(text, out="new.tfrecord")
    found = [tfw.decode_example(record) for record in tfw.read_records("new.tfrecord")]
    for name, expected in {"x": "[inf, -inf, 1.5, nan]", "y": "[nan, inf, 2.0, -inf, inf]"}.items():
        assert expected == str([row[name].item() for row in found if name in row])
    convert("x\ninf\nnan\n")  # words alone
    assert [{"x": "inf"}, {"x": "nan"}] == rows()


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "tar"])
def test_text_is_compressed_by_gzip_alone(suffix):
    name = f"a.{suffix}.zlib"
    with open(name, "wb") as file:
        file.write(zlib.compress(b"x\n1\n"))
    result = tfwire_main("convert", name, "-o", "b.tfrecord")
    expected = (
        f"tfwire convert: {name}: zlib is read of TFRecord files; compress {suffix} by gzip\n"
    )
    assert (1, expected) == (result.returncode, result.stderr.decode())
    tfw.write_records("a.tfrecord", [{"x": 1}])
    result = tfwire_main("convert", "a.tfrecord", "-o", name, "--force")
    assert 2 == result.returncode
    assert b"choose a name in .gz" in result.stderr


def test_files_named_tsv_have_tabs():
    convert("id\tx\n1\ta b\n3\tc\n", name="in.tsv")
    assert ROWS == rows()
    assert 0 == tfwire_main("convert", "out.jsonl", "-o", "new.tsv").returncode
    with open("new.tsv", "rb") as file:
        assert b"id\tx\n1\ta b\n3\tc\n" == file.read()
    convert("id,x\n1,a b\n3,c\n", "--delimiter", ",", name="in.tsv")
    assert ROWS == rows()


def test_options_of_csv_to_csv_are_of_the_input():
    convert("id;x\n1;a\n", "--delimiter", ";", out="new.csv")
    convert("1;a\n", "--delimiter", ";", "--no-header", name="b.csv", out="other.csv")
    with open("new.csv") as new, open("other.csv") as other:
        assert ("id,x\n1,a\n", "column_0,column_1\n1,a\n") == (new.read(), other.read())


def test_without_a_header_columns_are_numbered():
    assert [] == convert("1,a\n,b\n", "--no-header")["lost"]
    assert [{"column_0": 1, "column_1": "a"}, {"column_1": "b"}] == rows()
    lost = convert("1,a\n", "--no-header", name="in.csv", out="new.tfrecord")["lost"]
    assert [] == lost
    result = tfwire_main("convert", "new.tfrecord", "-o", "new.csv", "--no-header")
    assert b"the names of columns, as there is no header" in result.stdout
    with open("new.csv") as file:
        assert "1,a\n" == file.read()


def test_a_header_of_numbers_is_doubted():
    assert ["the names of columns are numbers; --no-header reads the first line as a row"] == (
        convert("1,2.5\n3,4\n")["lost"]
    )


@pytest.mark.parametrize("delimiter", [";", "\t", "|", " "])
def test_one_column_that_holds_another_delimiter_is_an_error(delimiter):
    text = f"id{delimiter}x\n1{delimiter}2\n3{delimiter}4\n"
    shown = {"\t": "tab"}.get(delimiter, f"'{delimiter}'")
    message = convert(text, status=1)
    assert f"in.csv: line 1: one column with delimiter ',', 2 with {shown}: " in message
    assert f"give --delimiter {shown}; --delimiter ',' if it is one column\n" in message
    assert not os.path.exists("out.jsonl")
    message = convert(text.replace(delimiter, ","), "--delimiter", "#", status=1)
    assert "one column with delimiter '#', 2 with ',': give --delimiter ','\n" in message
    long = text + f"5{delimiter}6\n" * 50 + f'7{delimiter}"a\nb"\n'
    assert "give --delimiter" in convert(long, status=1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name\nLovelace; Ada\nTuring\n", []),  # not in every line
        ("first name\n", []),
        ("first name\nAda Lovelace\n", ["--delimiter", ","]),
        ("name\nAda Lovelace\n", []),
        ('"a;b"\n"c;d"\n', []),
        ("id\n1\n", []),
        ("", []),
        ("\n\n", []),
    ],
)
def test_one_column_stays_one(text, words):
    convert(text, *words)


@pytest.mark.parametrize("words", [[], ["--delimiter", ";"], ["--delimiter", "tab"]])
def test_one_column_that_is_written_is_read_back(words):
    for text in "a;b", "a b", "a|b", "a\tb", "a,b", "a b;c", '"', "a\nb":
        found = [{text: text}] * 3
        tfw.write_records("in.tfrecord", found)
        assert 0 == tfwire_main("convert", "in.tfrecord", "-o", "new.csv", *words).returncode
        convert(Path("new.csv").read_bytes(), *words)
        assert found == rows()
        os.unlink("new.csv")


# "é" in the third line of these texts, the second of a cell.
LATIN = 'a,b\n1,"x\né"\n2,y\n'


@pytest.mark.parametrize(
    ("data", "said", "words"),
    [
        (LATIN.encode("latin-1"), "line 3: expected UTF-8; --encoding says", "latin-1"),
        (LATIN.encode("cp1252"), "line 3: expected UTF-8; --encoding says", "CP1252"),
        (LATIN.encode("utf-16"), "line 1: expected UTF-8, found UTF-16", "utf-16"),
        (b"\xfe\xff" + LATIN.encode("utf-16-be"), "line 1: expected UTF-8, found UTF-16", "utf-16"),
        (LATIN.encode("utf-16-le"), "line 1: UTF-16 without a mark", "utf-16-le"),
        (LATIN.encode("utf-16-be"), "line 1: UTF-16 without a mark", "utf-16-be"),
        (LATIN.encode("utf-8-sig"), None, "utf-8"),
        (
            ("\ufeff" + LATIN).encode("utf-16-le"),
            "line 1: expected UTF-8, found UTF-16",
            "utf-16-le",
        ),
        (
            ("\ufeff" + LATIN).encode("utf-16-be"),
            "line 1: expected UTF-8, found UTF-16",
            "utf-16-be",
        ),
        (LATIN.encode(), None, "utf8"),
    ],
)
def test_encodings_are_named_with_the_line_and_read(data, said, words):
    if said is None:
        convert(data)
    else:
        message = convert(data, status=1)
        assert f"in.csv: {said}" in message
        assert "--encoding" in message
    convert(data, "--encoding", words)
    assert [{"a": 1, "b": "x\né"}, {"a": 2, "b": "y"}] == rows()


@pytest.mark.parametrize(
    ("data", "encoding", "said"),
    [
        (b"a\n\x81\n", "cp1252", "line 2: other bytes than cp1252 has"),
        ("a\n\ud800\n".encode("utf-16", "surrogatepass"), "utf-16", "line 2: other bytes than"),
        ("a\n1\n".encode("utf-16-le")[:-1], "utf-16-le", ": other bytes than utf-16-le has"),
        (
            "a\n1\n".encode("utf-16-le"),
            "utf-16",
            "line 1: utf-16 begins with a mark, found none; give --encoding utf-16-le",
        ),
    ],
)
def test_bytes_of_no_encoding_that_is_given_are_named(data, encoding, said):
    message = convert(data, "--encoding", encoding, status=1)
    assert said in message
    assert "in.csv: " in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('a,b\n1,"x\n\ny"\n2\n', "line 5: expected 2 cells, found 1"),
        ('a,b\n1,2\n"3\n4\n5,6\n', "line 3: "),  # a quote that is never closed
        ('a,b\n1,2\n"3"x,4\n', "line 3: "),
        ("\n\na,a\n", "line 3: 'a' occurs twice"),
    ],
)
def test_errors_name_the_line_where_a_row_begins(text, said):
    assert f"in.csv: {said}" in convert(text, status=1)


def test_errors_of_values_name_the_line_too():
    tfw.write_schema({"a": tfw.FixedLenFeature([], tfw.int64)}, "schema.pbtxt")
    text = 'a,b\n1,"x\n"\n\ny,z\n'
    assert "in.csv: line 5: 'a': expected int64" in convert(
        text, "--schema", "schema.pbtxt", status=1
    )
    assert "in.csv: line 2: 'b': expected base64" in convert(text, "--base64", "b", status=1)
    message = convert(text.replace("y", ""), "--schema", "schema.pbtxt", status=1)
    assert "in.csv: line 5: no 'a', which the schema requires" in message


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--delimiter", "ab"], "must be a character or the word tab, found 'ab'"),
        (["--delimiter", '"'], "must be a character"),
        (["--delimiter", "\n"], "must be a character"),
        (["--delimiter", ""], "must be a character"),
        (["--encoding", "utf-5"], "must be an encoding that Python knows, found 'utf-5'"),
        (["--encoding", "hex"], "must be an encoding"),
    ],
)
def test_wrong_forms_are_refused(words, said):
    assert said in convert("a\n1\n", *words, status=2)


@pytest.mark.parametrize(
    "words", [["--delimiter", ";"], ["--header"], ["--no-header"], ["--encoding", "latin-1"]]
)
def test_the_options_are_for_csv(words):
    message = convert('{"a": 1}\n', *words, name="in.jsonl", out="out.tfrecord", status=2)
    assert "for CSV" in message
    message = convert('{"a": 1}\n', "--encoding", "latin-1", name="in.jsonl", out="o.csv", status=2)
    assert "--encoding is for CSV as input" in message
