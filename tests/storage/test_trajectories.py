"""Runs come back equal, old files stay readable, and damaged ones are refused by field."""

import errno
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from hardmax.errors import FileError, InputError
from hardmax.storage.array_files import FORMAT
from storage.runs import assert_equal, make_runs

_RUNS = make_runs()
_FILES = Path(__file__).parent / "files"


@pytest.mark.parametrize("suffix", ["zarr", "zip", "nc"])
@pytest.mark.parametrize("name", _RUNS)
def test_runs_come_back_equal(tmp_path: Path, name: str, suffix: str) -> None:
    path = tmp_path / f"run.{suffix}"
    hm.save(_RUNS[name], path)
    assert_equal(hm.load(path), _RUNS[name])
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", ["zarr", "zip", "nc"])
def test_the_newer_file_replaces_the_older(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run.{suffix}"
    for name in ("hardmax", "limit"):
        hm.save(_RUNS[name], path)
        assert_equal(hm.load(path), _RUNS[name])
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("engine", ["zarr", "h5netcdf"])
def test_xarray_opens_the_files(tmp_path: Path, engine: str) -> None:
    run = _RUNS["hardmax"]
    path = tmp_path / ("run.zarr" if engine == "zarr" else "run.nc")
    hm.save(run, path)
    options = {"consolidated": False} if engine == "zarr" else {}
    with xarray.open_dataset(path, engine=engine, **options) as data:
        assert data["tokens"].dims == ("layer", "token", "coordinate")
        np.testing.assert_array_equal(data["tokens"].sel(layer=2), run.tokens[2])
        np.testing.assert_array_equal(data["follows"], run.leadership.follows)


@pytest.mark.parametrize("suffix", ["zip", "nc"])
@pytest.mark.parametrize("content", ["trajectory", "equilibrium"])
def test_files_of_format_1_stay_readable(content: str, suffix: str) -> None:
    """Written once by the first version and never again; see files/README.md for how."""
    value = hm.load(_FILES / f"{content}_format_1.{suffix}")
    tokens = np.array([[1.0, 1.0], [1.0, -1.0], [0.5, 0.0], [-1.0, 0.0]])
    assert (value.layer.alpha.numerator, value.layer.alpha.denominator) == (1, 3)
    np.testing.assert_array_equal(value.layer.A, [[2.0, 0.0], [0.0, 2.0]])
    np.testing.assert_array_equal(value.leadership.leaders, [0, 1, 3])
    np.testing.assert_array_equal(value.leadership.ties[2], [0, 1])
    np.testing.assert_array_equal(value.weights, [1.0, 1.0, 2.0, 2.0])
    assert value.assumptions.hold
    assert value.outcome.ok
    if isinstance(value, hm.Trajectory):
        np.testing.assert_array_equal(value.layers, [0, 1, 2])
        np.testing.assert_array_equal(value.tokens[0], tokens)
        np.testing.assert_allclose(value.tokens[1][2], [0.625, 0.0], rtol=1e-15)
    else:
        np.testing.assert_array_equal(value.positions[2], [1.0, 0.0])


@pytest.mark.parametrize("suffix", ["zip", "nc"])
@pytest.mark.parametrize(
    "layer", [hm.Block(*[hm.HardmaxLayer(0.5)] * 900), hm.HardmaxLayer(0.5, np.eye(200))], ids=["deep", "wide"]
)
def test_long_recipes_and_large_matrices_fit(tmp_path: Path, layer: hm.AbstractLayer, suffix: str) -> None:
    """HDF5 limits an attribute to 64 kB unless told otherwise."""
    outcome = hm.Outcome(hm.Ending.STOPPED, "made by hand")
    run = hm.Trajectory(np.zeros((1, 2, 200)), np.array([0]), outcome, layer)
    hm.save(run, tmp_path / f"run.{suffix}")
    assert_equal(hm.load(tmp_path / f"run.{suffix}"), run)


# What must be refused ------------------------------------------------------------------------------------------


def _change_attribute(path: Path, name: str, value: object) -> None:
    file = path / "zarr.json"
    words = json.loads(file.read_text())
    if value is None:
        del words["attributes"][name]
    else:
        words["attributes"][name] = value
    file.write_text(json.dumps(words))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (
            "format",
            FORMAT + 1,
            rf"has format {FORMAT + 1}, and this version reads formats up to {FORMAT}: install a newer version",
        ),
        ("format", None, r"has no field 'format'"),
        ("format", "one", r"has no field 'format'"),
        ("content", "poem", r"the field 'content' is 'poem'"),
        ("kind", None, r"the field 'kind' is missing"),
        ("dtype", "int3", r"the field 'dtype' is 'int3', not float32 or float64"),
        ("outcome", "{", r"the field 'outcome' is not JSON"),
        ("outcome", "[]", r"the field 'outcome' is not a JSON object"),
        ("outcome", '{"ending": "happy"}', r"the field 'outcome' is incomplete or wrong"),
        ("layer", '{"kind": "hardmax"}', r"the field 'layer' is incomplete or wrong \(KeyError: 'alpha'\)"),
        ("layer", '{"kind": "magic"}', r"the field 'layer' is incomplete or wrong .*no layer is called 'magic'"),
        (
            "layer",
            '{"kind": "hardmax", "alpha": -1, "tolerance": null, "A": null, "V": null}',
            r"the field 'layer' cannot be used \(alpha must be positive",
        ),
        (
            "layer",
            '{"kind": "hardmax", "alpha": "1/0", "tolerance": null, "A": null, "V": null}',
            r"the field 'layer' is incomplete or wrong \(ZeroDivisionError",
        ),
        (
            "layer",
            '{"kind": "hardmax", "alpha": 1, "tolerance": null, "A": "nowhere", "V": null}',
            r"the field 'nowhere' is missing",
        ),
        ("assumptions", '{"symmetric": true}', r"the field 'assumptions' is \{'symmetric': True\}"),
    ],
)
def test_bad_attributes_are_named(tmp_path: Path, field: str, value: object, message: str) -> None:
    path = tmp_path / "run.zarr"
    hm.save(_RUNS["hardmax"], path)
    _change_attribute(path, field, value)
    with pytest.raises(hm.FileError, match=rf"run\.zarr: .*{message}"):
        hm.load(path)


def test_a_missing_piece_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "run.zarr"
    hm.save(_RUNS["hardmax"], path)
    (path / "tokens/c/2/0/0").unlink()
    with pytest.raises(hm.FileError, match=r"the field 'tokens' lacks 1 of its 5 pieces: it is damaged or half"):
        hm.load(path)
    shutil.rmtree(path / "follows")
    shutil.rmtree(path / "tokens")
    with pytest.raises(hm.FileError, match=r"the field 'tokens' is missing"):
        hm.load(path)


def _flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def test_a_changed_number_is_noticed(tmp_path: Path) -> None:
    hm.save(_RUNS["hardmax"], tmp_path / "run.zarr")
    piece = tmp_path / "run.zarr/tokens/c/2/0/0"
    _flip(piece, len(piece.read_bytes()) // 2)
    hm.save(_RUNS["hardmax"], tmp_path / "run.nc")
    os.truncate(tmp_path / "run.nc", (tmp_path / "run.nc").stat().st_size - 47)  # a file that another tool changed
    with h5py.File(tmp_path / "run.nc") as file:
        chunk = file["tokens"].id.get_chunk_info(0)
    _flip(tmp_path / "run.nc", chunk.byte_offset + chunk.size // 2)
    for name in ("run.zarr", "run.nc"):
        with pytest.raises(hm.FileError, match=rf"{name}: the field 'tokens' cannot be read"):
            hm.load(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("layer", np.arange(1, 10), r"the field 'tokens' has shape \(5, 12, 2\), not \(9, any, any\)"),
        ("layer", np.ones(5), r"the field 'layer' holds float64"),
        ("follows", np.full(12, 12), r"the field 'follows' names tokens 12 to 12 where there are 12"),
        ("leader", np.array([-1]), r"the field 'leader' names tokens -1 to -1"),
        ("emerged_at", np.arange(1, 100), r"the field 'emerged_at' has shape \(99,\)"),
    ],
)
def test_arrays_that_do_not_fit_are_named(tmp_path: Path, name: str, array: np.ndarray, message: str) -> None:
    import zarr

    path = tmp_path / "run.zarr"
    hm.save(_RUNS["hardmax"], path)
    zarr.open_group(path, mode="r+").create_array(name, data=array, overwrite=True)
    with pytest.raises(hm.FileError, match=message):
        hm.load(path)


def test_bad_ties_are_named(tmp_path: Path) -> None:
    import zarr

    path = tmp_path / "run.zarr"
    hm.save(_RUNS["tied tensors in float32"], path)
    zarr.open_group(path, mode="r+")["tie_offsets"][0] = 5
    with pytest.raises(hm.FileError, match=r"the field 'tie_offsets' does not increase from 0"):
        hm.load(path)


@pytest.mark.parametrize("suffix", ["zip", "nc"])
@settings(deadline=None, max_examples=30)
@given(part=st.floats(0.0, 0.999))
def test_truncated_files_are_refused(tmp_path_factory: pytest.TempPathFactory, suffix: str, part: float) -> None:
    whole = (_FILES / f"trajectory_format_1.{suffix}").read_bytes()
    path = tmp_path_factory.getbasetemp() / f"cut.{suffix}"
    path.write_bytes(whole[: int(part * len(whole))])
    with pytest.raises(hm.FileError, match=r"cut\.\w+: the field .* cannot be read .* save the run again"):
        hm.load(path)


@settings(deadline=None, max_examples=60)
@given(place=st.floats(0.0, 0.999), flip=st.integers(1, 255))
def test_a_flipped_byte_never_escapes_as_another_error(
    tmp_path_factory: pytest.TempPathFactory, place: float, flip: int
) -> None:
    data = bytearray((_FILES / "equilibrium_format_1.zip").read_bytes())
    data[int(place * len(data))] ^= flip
    path = tmp_path_factory.getbasetemp() / "flip.zip"
    path.write_bytes(data)
    try:
        hm.load(path)  # a byte may be one that does not matter
    except hm.FileError as error:
        refusal = str(error)
    else:
        return
    assert str(path) in refusal


def test_other_peoples_files_are_refused(tmp_path: Path) -> None:
    xarray.Dataset({"x": ("t", [1.0, 2.0])}).to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(hm.FileError, match=r"other\.nc: has no field 'format': give a file"):
        hm.load(tmp_path / "other.nc")
    with zipfile.ZipFile(tmp_path / "letters.zip", "w") as packed:
        packed.writestr("hello.txt", "hello")
    with pytest.raises(hm.FileError, match=r"letters\.zip: the field 'zarr\.json' cannot be read"):
        hm.load(tmp_path / "letters.zip")
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(hm.FileError, match=r"empty\.zarr: is no zarr store: it holds no zarr\.json"):
        hm.load(tmp_path / "empty.zarr")
    with pytest.raises(hm.FileError, match=r"none\.nc: there is no such file"):
        hm.load(tmp_path / "none.nc")


def test_names_and_values_that_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(hm.FileError, match=r"runs cannot be saved as \.pkl: use \.zarr, \.zip, \.nc"):
        hm.save(_RUNS["limit"], tmp_path / "run.pkl")
    with pytest.raises(hm.FileError, match=r"runs cannot be loaded as a file without suffix: use"):
        hm.load(tmp_path / "run")
    with pytest.raises(
        hm.InputError, match=r"value must be a Trajectory, an Equilibrium, Phases or a LowTemperatureLimit, got a list"
    ):
        hm.save([1.0], tmp_path / "run.nc")  # type: ignore[arg-type]

    @dataclass(frozen=True)
    class Strange(hm.AbstractLayer):
        secret: object

        def step(self, tokens, weights):  # type: ignore[no-untyped-def]
            return tokens

    strange = hm.simulate([[1.0, 2.0]], Strange(object()), depth=1)
    with pytest.raises(hm.InputError, match=r"layer must hold numbers, arrays or parts of this library to be saved"):
        hm.save(strange, tmp_path / "run.nc")
    with pytest.raises(hm.FileError, match=r"missing does not exist: create it"):
        hm.save(_RUNS["limit"], tmp_path / "missing/run.zarr")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("package", "suffix"), [("zarr", "zarr"), ("zarr", "zip"), ("h5netcdf", "nc")])
def test_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, suffix: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        hm.MissingExtraError, match=rf"needs the package {package}: pip install .*{package}.*\(the extra: store\)"
    ):
        hm.save(_RUNS["limit"], tmp_path / f"run.{suffix}")
    assert os.listdir(tmp_path) == []


def test_a_netcdf_file_with_any_wrong_byte_is_refused_before_hdf5_sees_it(tmp_path, monkeypatch):
    """A wrong byte in the tables of HDF5 can make that library turn in circles; the checksum is read before."""
    path = tmp_path / "run.nc"
    hm.save(hm.simulate(np.array([[2.0, 0.0], [0.5, 0.1]]), hm.HardmaxLayer(alpha=0.5), depth=3), path)
    whole = path.read_bytes()
    with xarray.open_dataset(path, engine="h5netcdf") as others:  # other tools do not mind the seal
        assert others["tokens"].shape == (4, 2, 2)
    for place in range(0, len(whole) - 47, 97):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with monkeypatch.context() as patch:
            patch.setattr(h5py, "File", None)  # must not be reached
            with pytest.raises(FileError, match="its bytes are not those that were written"):
                hm.load(path)
    path.write_bytes(whole[:-1])  # without its seal it is an ordinary file, and whole
    assert len(hm.load(path)) == 4


def test_a_netcdf_file_that_another_tool_changed_is_read(tmp_path):
    path = tmp_path / "run.nc"
    hm.save(hm.simulate(np.array([[2.0, 0.0], [0.5, 0.1]]), hm.HardmaxLayer(alpha=0.5), depth=3), path)
    with h5py.File(path, "a") as file:
        file.attrs["comment"] = "seen by Ada"
    assert len(hm.load(path)) == 4


def test_what_is_no_run_is_told_where_it_belongs(tmp_path):
    with pytest.raises(InputError, match="models and networks have a method save of their own"):
        hm.save(object(), tmp_path / "a.nc")
    with pytest.raises(FileError, match=r"LeaderClassifier\.load, load_forecaster and ExactTransformer\.load"):
        hm.load(tmp_path / "model.safetensors")


_ON_A_FULL_DISK = """
import resource, sys
import numpy as np
import hardmax as hm

run = hm.simulate(np.random.default_rng(0).normal(size=(2000, 3)), hm.HardmaxLayer(), depth=4)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    hm.save(run, sys.argv[1])
except hm.FileError as error:
    print(f"refused: {error}")
"""


def test_a_full_disk_is_one_error_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.nc"
    command = [sys.executable, "-c", _ON_A_FULL_DISK, str(path)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stderr == ""
    assert done.stdout.startswith(f"refused: {path}: cannot be written (File too large): choose a folder with space")
    assert list(tmp_path.iterdir()) == []


def test_no_space_left_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "open", lambda self, mode: Full())
    with pytest.raises(FileError, match="cannot be written .No space left on device.: choose a folder with space"):
        hm.save(_RUNS["hardmax"], tmp_path / "run.nc")
