"""Data sets from files in long form: inputs and output points in two tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from hardmax.errors import FileError
from hardmax.interpolation.data import read_problem

INPUTS = "sequence,token,x,y\nA,2,1,1/2\nA,10,0,0\nB,one,0,1\n"
OUTPUTS = "sequence,token,x,y\nA,1,3,4\nB,1,5,6\n"


def test_output_points_come_from_tables_alone(tmp_path: Path) -> None:
    inputs, outputs = tmp_path / "inputs.csv", tmp_path / "outputs.csv"
    inputs.write_text(INPUTS)
    outputs.write_text(OUTPUTS)
    problem = read_problem(inputs, outputs)
    assert problem.labels is None
    assert problem.outputs is not None
    # Tokens in the order of their numbers, not of their letters.
    assert [[[str(c) for c in point] for point in tokens] for tokens in problem.inputs] == [
        [["1", "1/2"], ["0", "0"]],
        [["0", "1"]],
    ]
    pd.read_csv(outputs).to_parquet(tmp_path / "outputs.parquet")
    again = read_problem(inputs, tmp_path / "outputs.parquet")
    for found in (problem.outputs, again.outputs):
        assert found is not None
        assert [[[float(str(c)) for c in point] for point in points] for points in found] == [[[3, 4]], [[5, 6]]]
    (tmp_path / "outputs.json").write_text("{}")
    with pytest.raises(FileError, match=r"output points of the kind .json cannot be read: use .csv"):
        read_problem(inputs, tmp_path / "outputs.json")
