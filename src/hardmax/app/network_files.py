"""Networks and data sets that come and go as files of the exact networks page."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from ..errors import FileError
from ..interpolation.certificate import Certificate
from ..interpolation.files import JSON_NAME, TENSORS_NAME
from ..interpolation.network import ExactTransformer
from ..interpolation.problems import Problem, read_problem
from ..interpolation.verification import verify
from ..progress import Tell
from .archives import pack, unpack
from .upload_files import as_file
from .uploads import Upload, rows_of, text_of

CERTIFICATE_NAME = "certificate.json"


def network_archive(network: ExactTransformer, certificate: Certificate, folder: Path) -> bytes:
    """Both files of a network and its certificate, as a ZIP archive."""
    place = network.save(folder / "network")
    try:
        files = {name: (place / name).read_bytes() for name in (JSON_NAME, TENSORS_NAME)}
    finally:
        shutil.rmtree(place, ignore_errors=True)
    files[CERTIFICATE_NAME] = json.dumps(certificate.to_dict(), indent=2).encode()
    return pack(files)


@dataclass(frozen=True)
class NetworkFiles:
    """The files of a network that somebody saved, not yet read."""

    name: str
    files: dict[str, bytes]

    def verify(self, folder: Path, tell: Tell) -> tuple[ExactTransformer, Certificate]:
        """Read the network and prove it again from its data and its weights."""
        place = folder / "uploaded"
        place.mkdir(exist_ok=True)
        try:
            for name in (JSON_NAME, TENSORS_NAME):
                if name in self.files:
                    (place / name).write_bytes(self.files[name])
            return ExactTransformer.load(place), verify(place, progress=tell)
        except FileError as error:
            raise FileError(self.name, error.problem, error.remedy) from None
        finally:
            shutil.rmtree(place, ignore_errors=True)


def load_network(upload: Upload) -> NetworkFiles:
    """The files of a network: a ZIP archive of both, or its JSON file alone."""
    if upload.suffix == ".json":
        return NetworkFiles(upload.name, {JSON_NAME: text_of(upload).encode()})
    files = unpack(upload, (".json", ".safetensors"))
    if JSON_NAME not in files:
        raise FileError(upload.name, f"holds no {JSON_NAME}", "upload an archive that was downloaded from here")
    return NetworkFiles(upload.name, files)


def read_upload(upload: Upload, folder: Path) -> Problem:
    """A data set to compile: JSON, or CSV in long form with a column of labels."""
    if upload.suffix == ".csv":
        rows_of(upload)  # refuses what is too wide, too long or no table
    with as_file(folder / f"data{upload.suffix}", text_of(upload).encode(), upload.name) as path:
        return read_problem(path)
