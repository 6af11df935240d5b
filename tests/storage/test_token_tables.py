"""Tables of numbers from files: read exactly, or refused with the line and the remedy."""

import sys
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from hardmax.errors import FileError, InputError, MissingExtraError
from hardmax.storage.token_tables import read_matrix, read_tokens, read_weights, write_tokens

_POINTS = np.array([[1.0, 2.0], [3.0, -4.5]])


def _file(folder: Path, content: bytes | str, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        "1,2\n3,-4.5\n",
        "1,2\n3,-4.5",
        "x,y\n1,2\n3,-4.5\n",
        "\n x , y \n\n1 , 2\n\n 3,-4.5\n\n",
        "1;2\n3;-4.5\n",
        "x;y\n1,0;2,0\n3,0;-4,5\n",
        "x\ty\n1\t2\n3\t-4.5\n",
        "1 2\n3   -4.5\n",
        "1,2\r\n3,-4.5\r\n",
        "1,2\r3,-4.5\r",
        '"1","2"\n"3","-4.5"\n',
        "\ufeffx,y\n1,2\n3,-4.5\n",
        "1e0,2E0\n+3,-.45e1\n",
        "x\ty\n1,0\t2\n3\t-4,5\n",
        "x|y\n1|2\n3|-4.5\n",
        "x;y;\n1;2;\n3;-4,5; \n",
        "1;2;\n3;-4,5\n",
        "# made by a balance\n# x y\n1 2\n3 -4.5\n",
        "größe;höhe\n1;2\n3;-4,5\n".encode("cp1252"),
        "größe,höhe\n1,2\n3,-4.5\n".encode("utf-16"),
        "x\ty\r\n1\t2\r\n3\t-4.5\r\n".encode("utf-16-le"),
        "1,2\n3,-4.5\n".encode("utf-16-be"),
    ],
)
def test_text_in_all_its_dialects(tmp_path: Path, content: bytes | str) -> None:
    found = read_tokens(_file(tmp_path, content))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, _POINTS)


def test_one_column_and_one_number(tmp_path: Path) -> None:
    assert read_tokens(_file(tmp_path, "x\n1\n2\n")).shape == (2, 1)
    assert read_tokens(_file(tmp_path, "7")).shape == (1, 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"a\.csv: is empty: save one line of numbers per token"),
        ("\n \n", r"is empty"),
        ("x,y\n", r"line 1 is a header and no numbers follow"),
        ("1,2\n3,four\n5,6\n", r"line 2, column 2 is 'four', not a number: save one line"),
        ("1,2\n3,\n5,6\n", r"line 2, column 2 is empty, not a number"),
        ("1,two\n3,4\n", r"line 1, column 2 is 'two', not a number"),
        ("1,2\n\n3,4,5\n6,7\n", r"line 3 has 3 cells where line 1 has 2: "),
        ("1,2\n3,4\n5", r"line 3 has 1 cell where line 1 has 2 \(the last line: the file may be half-written\)"),
        ("1,2\n3,4e", r"line 2, column 2 is '4e', not a number \(the last line: the file may be half-written\)"),
        ("x,y\n1,2,3\n", r"the header on line 1 names 2 columns and the lines have 3: give every column one name"),
        (",x,y\n0,1,2\n1,3,4\n", r"the first column has no name and looks like row numbers: .*index=False"),
        (b"1,2\n\xff\xfe", r"line 2, column 1 is 'ÿþ', not a number"),
        (b"1,2\n\x81\x8d", r"is not text in UTF-8 \(byte 4 is 0x81\): save it as text in UTF-8"),
        (b"\x89PNG\r\n\x00\xff", r"is not text in UTF-8 \(byte 0 is 0x89\): save it as text in UTF-8"),
        ("1;2;3\n4;5;\n", r"line 2, column 3 is empty, not a number"),
        ("PK\x03\x04 not a table at all, sorry\n", r"header and no numbers follow"),
    ],
)
def test_bad_text_names_the_line(tmp_path: Path, content: bytes | str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        read_tokens(_file(tmp_path, content))


@settings(deadline=None, max_examples=400)
@given(
    content=st.one_of(
        st.binary(max_size=60),
        st.text(alphabet="0123456789.,;\t -+eEnaifxy\"'_\n\r\x00\u0663", max_size=60).map(str.encode),
    )
)
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = _file(tmp_path_factory.getbasetemp(), content, "fuzz.csv")
    try:
        values = read_tokens(path)
    except FileError as error:
        refusal = str(error)
    else:
        assert values.dtype == np.float64
        assert values.ndim == 2
        assert values.size > 0
        return
    assert str(path) in refusal


@settings(deadline=None, max_examples=40)
@given(
    values=arrays(
        np.float64,
        array_shapes(min_dims=2, max_dims=2, max_side=5),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    ),
    suffix=st.sampled_from([".csv", ".tsv", ".txt", ".npy", ".parquet"]),
)
def test_every_digit_comes_back(tmp_path_factory: pytest.TempPathFactory, values: np.ndarray, suffix: str) -> None:
    path = tmp_path_factory.getbasetemp() / f"round{suffix}"
    write_tokens(values, path)
    np.testing.assert_array_equal(read_tokens(path), values)


def test_tensors_are_written_too(tmp_path: Path) -> None:
    write_tokens(torch.tensor(_POINTS, requires_grad=True), tmp_path / "a.csv")
    np.testing.assert_array_equal(read_tokens(tmp_path / "a.csv"), _POINTS)


def test_bad_tokens_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"tokens must be finite"):
        write_tokens([[np.nan, 1.0]], tmp_path / "a.csv")
    with pytest.raises(FileError, match=r"a\.xlsx: tables of the kind \.xlsx cannot be written: use \.csv"):
        write_tokens(_POINTS, tmp_path / "a.xlsx")
    assert list(tmp_path.iterdir()) == []


def _npy(path: Path, array: np.ndarray) -> Path:
    np.save(path, array, allow_pickle=True)
    return path


def test_bad_npy_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    whole = _npy(path, np.arange(40.0).reshape(20, 2)).read_bytes()
    for size in (0, 4, 6, 8, 20, 128, len(whole) - 1):
        with pytest.raises(FileError, match=r"a\.npy: .*numpy\.save"):
            read_tokens(_file(tmp_path, whole[:size], "a.npy"))
    with pytest.raises(FileError, match="made of objects"):
        read_tokens(_npy(path, np.array([[object()]])))
    with pytest.raises(FileError, match=r"holds complex128, not real numbers: save it as float64"):
        read_tokens(_npy(path, np.ones((2, 2), dtype=complex)))
    with pytest.raises(FileError, match=r"the array has shape \(3,\), not \(token, coordinate\)"):
        read_tokens(_npy(path, np.ones(3)))
    with pytest.raises(FileError, match=r"is empty, shape \(0, 2\)"):
        read_tokens(_npy(path, np.ones((0, 2))))
    np.testing.assert_array_equal(read_tokens(_npy(path, np.array([[1, 2]], dtype=np.int8))), [[1.0, 2.0]])


def test_bad_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_tokens(_POINTS, path)
    with pytest.raises(FileError, match=r"is no whole Parquet file .*: write it again"):
        read_tokens(_file(tmp_path, path.read_bytes()[:-3], "a.parquet"))
    pandas.DataFrame({"x": [1.0, 2.0], "word": ["a", "b"]}).to_parquet(path)
    with pytest.raises(FileError, match=r"column 'word' holds (str|object), not numbers: drop or convert"):
        read_tokens(path)
    pandas.DataFrame({"x": [1.0, None]}).to_parquet(path)
    with pytest.raises(FileError, match=r"column 'x' has 1 missing values: fill or drop them"):
        read_tokens(path)
    pandas.DataFrame({"x": [1.0, 2.0]}, index=[5, 9]).to_parquet(path)
    np.testing.assert_array_equal(read_tokens(path), [[1.0], [2.0]])


def test_missing_parquet_reader_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tokens(_POINTS, tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        MissingExtraError, match=r"reading Parquet files needs the package pyarrow: pip install .*\(the extra: store\)"
    ):
        read_tokens(tmp_path / "a.parquet")


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"none\.csv: there is no such file: check the name"):
        read_tokens(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FileError, match=r"folder\.csv: is not a file"):
        read_tokens(tmp_path / "folder.csv")
    with pytest.raises(FileError, match=r"tables of the kind \(no suffix\) cannot be read: use \.csv"):
        read_tokens(tmp_path / "none")


def test_matrices_are_square(tmp_path: Path) -> None:
    np.testing.assert_array_equal(read_matrix(_file(tmp_path, "2,1\n1,1\n")), [[2.0, 1.0], [1.0, 1.0]])
    with pytest.raises(FileError, match=r"the table has shape \(1, 2\), not square: save d rows of d numbers"):
        read_matrix(_file(tmp_path, "2,1\n"))


def test_weights_are_one_column(tmp_path: Path) -> None:
    for content in ("1\n2\n3\n", "w\n1\n2\n3\n", "1,2,3\n"):
        np.testing.assert_array_equal(read_weights(_file(tmp_path, content)), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(read_weights(_npy(tmp_path / "w.npy", np.array([1, 2]))), [1.0, 2.0])
    with pytest.raises(FileError, match=r"the table has shape \(2, 2\), not one column: save one weight per line"):
        read_weights(_file(tmp_path, "1,2\n3,4\n"))


def test_suffixes_are_read_in_any_case(tmp_path: Path) -> None:
    np.testing.assert_array_equal(read_tokens(_file(tmp_path, "1,2\n3,-4.5\n", "A.CSV")), _POINTS)
