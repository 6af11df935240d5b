"""Forecasters that come back as files: read with care, and put to work on the series that is shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ..errors import FileError, InputError
from ..forecasting.forecaster import TimeDelayedTransformer
from ..forecasting.model_files import FILE, load_forecaster
from .archives import unpack
from .forecasts import Data, Fit
from .uploads import Upload

_SAME_STEP = 1e-3


def read_model(upload: Upload, folder: Path) -> TimeDelayedTransformer:
    """A forecaster that was saved: the archive that is downloaded here, or the safetensors file in it."""
    data = upload.data
    if upload.suffix == ".zip":
        files = unpack(upload, (".safetensors",))
        if FILE not in files:
            raise FileError(upload.name, f"holds no {FILE}", "upload an archive that was downloaded from here")
        data = files[FILE]
    path = folder / "uploaded.safetensors"
    path.write_bytes(data)
    try:
        model = load_forecaster(path)
        if model.forcing_ is None:
            model.forecast(1)  # parts that do not fit together are found here
    except FileError as error:
        raise FileError(upload.name, error.problem, error.remedy) from None
    except (ValueError, TypeError, IndexError, KeyError) as error:
        raise FileError(upload.name, f"cannot be used ({error})", "the file is damaged; save the model again") from None
    finally:
        path.unlink(missing_ok=True)
    if model.forcing_ is not None or model.pod_ is not None:
        kind = "a model with inputs" if model.forcing_ is not None else "a model of fields"
        raise FileError(
            upload.name, f"holds {kind}, which this page cannot show", "use it in Python: hm.load_forecaster"
        )
    return model


def forecast_with(model: TimeDelayedTransformer, name: str, data: Data, steps: int) -> Fit:
    """Go on from the end of the series by a model that was loaded; both must have the same channels and time step."""
    record = data.regular()
    series = record.trajectories[-1]
    if series.shape[1] != model.channels_:
        raise InputError(
            "model",
            name,
            f"was fitted to {model.channels_} channels and the series has {series.shape[1]}",
            "choose or upload the series that it belongs to, then load it again",
        )
    if abs(record.dt - model.dt_) > _SAME_STEP * model.dt_:
        raise InputError(
            "model",
            name,
            f"was fitted to samples {model.dt_:.6g} apart and the series has them {record.dt:.6g} apart",
            "choose or upload the series that it belongs to, then load it again",
        )
    ahead = model.forecast(steps, window=series[-model.window :])
    times = np.asarray(record.last_time + model.dt_ * np.arange(1, steps + 1), dtype=np.float64)
    return Fit(data, model, replace(ahead, times=times), loaded=name)


def code_of_loaded(data: Data, name: str, steps: int) -> str:
    """Python that forecasts by a model from a file."""
    unpacked = "model.safetensors" if name.lower().endswith(".zip") else name
    return (
        f"import hardmax as hm\n{data.code}\n"
        f"model = hm.load_forecaster({unpacked!r})     # unpack an archive first\n"
        f"ahead = model.forecast({steps}, window=known[-model.window:])\n"
        "print(ahead.outcome)\n"
        "print(model.backtest(series=known).text())\n"
    )
