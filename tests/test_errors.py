"""Errors of the library between processes: joblib, dask and multiprocessing send them by pickle."""

import joblib
import pytest

from hardmax.errors import FileError, HardmaxError, InputError, MissingExtraError, ProcessError

ERRORS = [
    InputError("alpha", -1.0, "must be positive", "pass alpha > 0, or leave out `alpha`"),
    FileError("model/recipe.json", "is no model", "save it again with `path`"),
    MissingExtraError("dysts", "rivals", "the chaotic systems"),
    ProcessError("a process ended", "start all of them again"),
    HardmaxError("something"),
]


def _raise(error: HardmaxError) -> None:
    raise error


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_comes_back_from_another_process_as_it_was(error: HardmaxError) -> None:
    with pytest.raises(type(error)) as caught:
        joblib.Parallel(n_jobs=2)([joblib.delayed(_raise)(error) for _ in range(2)])
    again = caught.value
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert {name: getattr(again, name) for name in vars(error)} == vars(error)
