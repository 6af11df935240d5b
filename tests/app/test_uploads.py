"""What people upload, by mistake or on purpose: read as data, or refused in words."""

from __future__ import annotations

import base64
import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmax.app.forecasting.state import read_data
from hardmax.app.uploads import MOST_BYTES, FilePicker, Upload, checked, for_a_sheet, numbers_of, rows_of, text_of
from hardmax.errors import FileError, HardmaxError


def zip_bomb() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.csv", b"0" * 20_000_000)
    return packed.getvalue()


def test_a_table_of_numbers_with_and_without_names() -> None:
    values, names = numbers_of(Upload("a.csv", b"time,height\n1,2\n3,4.5\n"))
    assert names == ["time", "height"]
    assert values.tolist() == [[1, 2], [3, 4.5]]
    values, names = numbers_of(Upload("a.csv", b"1;2,5\n3;4\n"))
    assert names == ["x1", "x2"]
    assert values.tolist() == [[1, 2.5], [3, 4]]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (",".join(["1"] * 1_000_000).encode(), "1,000,000 columns"),
        (b"a,b\n=SUM(A1:A9),2\n", "'=SUM(A1:A9)', not a number"),
        (b'a,b\n=cmd|"/c calc"!A1,2\n', "not a number"),
        (b"a,b\n1,nan\n", "line 2, column 2 is nan"),
        (b"a,b\n1,inf\n", "line 2, column 2 is inf"),
        (b"1\n" * 300_000, "300,001 lines"),
        (b"a,b\n1,2\n3\n", "line 3"),
        (b"\xff\xfe1\x002", "is not text in UTF-8"),
        (b"a,b\n1,\x81\n", "is not text in UTF-8"),
        (b"1,2\n\x00,3\n", "zero bytes"),
        (gzip.compress(b"1,2\n", mtime=0), "is a gzip archive"),
        (b"\x80\x04\x95" + b"1" * 20, "is a pickle"),
        (b"   \n \n", "empty"),
    ],
)
def test_hostile_tables_are_refused_in_words(data: bytes, words: str) -> None:
    with pytest.raises(FileError, match=r"hostile\.csv: ") as refused:
        numbers_of(Upload("hostile.csv", data))
    assert words in str(refused.value)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings_are_found_as_on_the_command_line(tmp_path: Path, encoding: str) -> None:
    table = "Größe,höhe\n1,2\n3,4\n".encode(encoding)
    values, names = numbers_of(Upload("a.csv", table))
    assert names == ["Größe", "höhe"]
    assert values.tolist() == [[1, 2], [3, 4]]
    assert rows_of(Upload("a.csv", table)).columns.tolist() == names
    series = read_data(Upload("a.csv", table), tmp_path, fill=False, even=False).series
    assert list(series.names) == names


def test_a_zip_bomb_renamed_is_never_unpacked() -> None:
    bomb = zip_bomb()
    assert len(bomb) < 100_000
    for read in (numbers_of, rows_of, text_of):
        with pytest.raises(FileError, match="is a ZIP archive"):
            read(Upload("innocent.csv", bomb))


def test_size_and_kind_are_checked_whatever_the_browser_says() -> None:
    with pytest.raises(FileError, match=r"50\.0 MB and at most 5 MB"):
        checked("long.csv", b"a" * (50 * 2**20), (".csv",))
    with pytest.raises(FileError, match=r"upload one of \.csv, \.txt"):
        checked("model.pkl", b"x", (".csv", ".txt"))
    with pytest.raises(FileError, match="is empty"):
        checked("a.csv", b"", (".csv",))
    assert checked("../../etc/passwd/a.CSV", b"1", (".csv",)).name == "a.CSV"


def test_rows_of_text_are_never_computed() -> None:
    table = rows_of(Upload("a.csv", b'text,label\n"=1+1",pos\n"a, b",NA\n'))
    assert table["text"].tolist() == ["=1+1", "a, b"]
    assert table["label"].tolist() == ["pos", "NA"]
    with pytest.raises(FileError, match="has two columns of the same name"):
        rows_of(Upload("a.csv", b"x,x\n1,2\n"))
    with pytest.raises(FileError, match="line 3 has 3 cells where line 1 has 2"):
        rows_of(Upload("a.csv", b"x,y\n1,2\n1,2,3\n"))


def test_what_is_written_back_is_no_formula() -> None:
    assert for_a_sheet("=SUM(A1)") == "'=SUM(A1)"
    assert for_a_sheet("@me") == "'@me"
    assert for_a_sheet("-1.5") == "-1.5"
    assert for_a_sheet("words") == "words"


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=200))
def test_any_bytes_are_numbers_or_a_message(data: bytes) -> None:
    try:
        values, names = numbers_of(checked("a.csv", data, (".csv",)))
    except HardmaxError:
        return
    assert np.isfinite(values).all()
    assert len(names) == values.shape[1]


def test_the_picker_hands_over_a_file_and_forgets_it() -> None:
    taken: list[Upload] = []
    refused: list[Exception] = []
    picker = FilePicker()
    picker.on_file((".csv",), taken.append, refused.append)
    picker.filename = "a.csv"
    picker.contents = base64.b64encode(b"1,2\n").decode()
    assert taken == [Upload("a.csv", b"1,2\n")]
    assert picker.contents == ""
    picker.contents = "not base64!"
    picker.contents = "="
    picker.filename = "large.csv"
    picker.contents = base64.b64encode(b"1" * (MOST_BYTES + 1)).decode()
    words = [str(error) for error in refused]
    assert ["did not arrive whole" in words[0], "is empty" in words[1], "at most 5 MB" in words[2]] == [True] * 3
    assert len(taken) == 1
