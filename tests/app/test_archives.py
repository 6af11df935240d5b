"""Archives: bounded before they are read, never unpacked to disk."""

import io
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from hardmax.app.archives import pack, unpack
from hardmax.app.uploads import Upload


@settings(deadline=None, max_examples=30)
@given(
    st.dictionaries(st.from_regex(r"[a-z]{1,8}\.json", fullmatch=True), st.binary(max_size=200), min_size=1, max_size=5)
)
def test_what_is_packed_comes_back(files):
    assert unpack(Upload("a.zip", pack(files)), (".json",)) == files
    assert pack(files) == pack(files)


def test_paths_inside_an_archive_lead_nowhere():
    files = unpack(Upload("a.zip", pack({"../../etc/network.json": b"1", "C:\\evil\\b.json": b"2"})), (".json",))
    assert files == {"network.json": b"1", "b.json": b"2"}


def test_a_bomb_that_lies_about_its_size_is_refused():
    bomb = bytearray(pack({"network.json": b"0" * (60 * 2**20)}))
    # The central directory claims ten bytes.
    at = bomb.rindex(b"PK\x01\x02")
    bomb[at + 24 : at + 28] = (10).to_bytes(4, "little")
    with pytest.raises(hm.FileError, match=r"a\.zip: (unpacks to more than 40 MB|is no ZIP archive)"):
        unpack(Upload("a.zip", bytes(bomb)), (".json",))


def test_too_many_files_are_refused():
    with pytest.raises(hm.FileError, match="holds 65 files"):
        unpack(Upload("a.zip", pack({f"{k}.json": b"1" for k in range(65)})), (".json",))


def test_a_locked_archive_is_refused():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.json", b"1")
    data = bytearray(buffer.getvalue())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1  # the bit that says encrypted
    with pytest.raises(hm.FileError, match="is no ZIP archive that can be read"):
        unpack(Upload("a.zip", bytes(data)), (".json",))
