"""Networks as ONNX graphs, written node by node, for any runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...errors import MissingExtraError
from ...files import write_bytes
from ..network import CompiledNetwork, stacked

_OPSET = 18  # the first with axes of ReduceMax as an input


def write_onnx(network: CompiledNetwork, path: Path, *, single_precision: bool = False) -> Path:
    """File to which a graph was written, with inputs ``tokens`` (batch, tokens, d) and ``mask`` (batch, tokens).

    The output is ``moved`` (batch, tokens, d). ``mask`` is true on real tokens; the output at padding is undefined. A
    token that is repeated counts once.
    """
    require_onnx()
    from onnx import checker

    model = _Graph(network, np.dtype(np.float32 if single_precision else np.float64)).model()
    checker.check_model(model)
    return write_bytes(path, model.SerializeToString())


def require_onnx() -> None:
    """Raise a MissingExtraError where the package onnx is not installed; called before a long computation."""
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise MissingExtraError("onnx", "onnx", "writing ONNX files") from None


class _Graph:
    """Nodes and constants of one network; every method returns the name of its output."""

    def __init__(self, network: CompiledNetwork, dtype: np.dtype[Any]) -> None:
        self.arrays = stacked(network.blocks, network.dimension, network.temperature)
        self.blocks = network.blocks
        self.dimension = network.dimension
        self.softmax = network.temperature is not None
        self.dtype = dtype
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        from onnx import numpy_helper

        array = np.asarray(value)
        if array.dtype.kind == "f":
            array = array.astype(self.dtype)
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper

        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def model(self) -> Any:
        from onnx import TensorProto, helper

        kind = TensorProto.DOUBLE if self.dtype == np.float64 else TensorProto.FLOAT
        shape: list[str | int | None] = ["batch", "token", self.dimension]
        counted = self._counted()
        column = self.node("Unsqueeze", self.node("Cast", counted, to=kind), self.constant(np.array([2])))
        absent = self.node("Not", self.node("Unsqueeze", counted, self.constant(np.array([1]))))
        x = "tokens"
        for k in range(len(self.blocks)):
            x = self._attention(k, self._feed_forward(k, x), column, absent)
        self.nodes.append(helper.make_node("Identity", [x], ["moved"]))
        graph = helper.make_graph(
            self.nodes,
            "hardmax",
            [
                helper.make_tensor_value_info("tokens", kind, shape),
                helper.make_tensor_value_info("mask", TensorProto.BOOL, ["batch", "token"]),
            ],
            [helper.make_tensor_value_info("moved", kind, shape)],
            self.constants,
        )
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", _OPSET)], producer_name="hardmax", ir_version=8
        )

    def _counted(self) -> str:
        """Mask of the real tokens that are the first of their value in their sequence, (batch, tokens)."""
        axis, other = self.constant(np.array([1])), self.constant(np.array([2]))
        same = self.node("Unsqueeze", "mask", axis)
        for k in range(self.dimension):
            coordinate = self.node("Gather", "tokens", self.constant(np.array(k)), axis=2)
            row, line = self.node("Unsqueeze", coordinate, axis), self.node("Unsqueeze", coordinate, other)
            same = self.node("And", same, self.node("Equal", row, line))
        first = self.node("ArgMax", self.node("CastLike", same, self.constant(np.array(0.0))), axis=2, keepdims=0)
        count = self.node("Gather", self.node("Shape", "tokens"), self.constant(np.array(1)), axis=0)
        position = self.node("Range", self.constant(np.array(0)), count, self.constant(np.array(1)))
        return self.node("And", "mask", self.node("Equal", first, position))

    def _feed_forward(self, k: int, x: str) -> str:
        a, count = self.arrays, len(self.blocks[k].neurons)
        kept = self._scaled(x, float(a["eta"][k]))
        if not count:
            return kept or self._zero(x)
        level = self.node(
            "Add", self.node("MatMul", x, self.constant(a["U"][k, :count].T)), self.constant(a["b"][k, :count])
        )
        moved = self.node("MatMul", self.node("Relu", level), self.constant(a["W"][k, :, :count].T))
        return self.node("Add", kept, moved) if kept else moved

    def _attention(self, k: int, x: str, column: str, absent: str) -> str:
        block, a = self.blocks[k], self.arrays
        kept = self._scaled(x, float(a["rho"][k]))
        if not block.V:
            return kept or self._zero(x)
        value = self.node("MatMul", x, self.constant(a["V_right"][k, : len(block.V)].T))
        if not block.B:
            axis = self.constant(np.array([1]))
            total = self.node("ReduceSum", self.node("Mul", value, column), axis, keepdims=1)
            mean = self.node("Div", total, self.node("ReduceSum", column, axis, keepdims=1))
        else:
            mean = self.node("MatMul", self._weights(k, x, absent), value)
        moved = self.node("MatMul", mean, self.constant(a["V_left"][k, : len(block.V)]))
        return self.node("Add", kept or self._zero(x), moved)

    def _weights(self, k: int, x: str, absent: str) -> str:
        rank, a = len(self.blocks[k].B), self.arrays
        query = self.node("MatMul", x, self.constant(a["B_right"][k, :rank].T))
        key = self.node("MatMul", x, self.constant(a["B_left"][k, :rank].T))
        score = self.node("MatMul", query, self.node("Transpose", key, perm=[0, 2, 1]))
        score = self.node("Where", absent, self.constant(np.array(-np.inf)), score)
        if self.softmax:
            return self.node("Softmax", score, axis=-1)
        last = self.constant(np.array([2]))
        best = self.node("Equal", score, self.node("ReduceMax", score, last, keepdims=1))
        chosen = self.node("CastLike", best, self.constant(np.array(0.0)))
        return self.node("Div", chosen, self.node("ReduceSum", chosen, last, keepdims=1))

    def _scaled(self, x: str, factor: float) -> str:
        """``factor * x``; the empty name for zero, so that a dropped term leaves no rounding."""
        if factor == 0.0:
            return ""
        return x if factor == 1.0 else self.node("Mul", x, self.constant(np.array(factor)))

    def _zero(self, x: str) -> str:
        return self.node("Mul", x, self.constant(np.array(0.0)))
