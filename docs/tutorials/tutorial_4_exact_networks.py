r"""
Build a network that interpolates exactly
=========================================

This lesson *compiles* a data set of sequences, without training, into a transformer that maps every input sequence to
its output exactly, and proves it in rational arithmetic.
"""

# %%
# Data
# ----
#
# A sequence is a set of points; here are three, which share some points. Each goes to its own set of targets.
# Numbers are taken exactly: ints, floats, fractions, and strings such as ``"1/3"``.

import json
import tempfile
from fractions import Fraction
from pathlib import Path

import hardmax as hm

inputs = [
    [[-2, 0], [-1, 2], [1, 1]],
    [[-1, 2], [1, 1], [2, -1]],
    [[0, -2], [1, 1], [-2, 0], [2, 2]],
]
outputs = [[[-1, -1], [0, 2]], [["1/3", 2]], [[1, -2], [-2, 1], [2, 0]]]

# %%
# Compile
# -------
#
# The result is a transformer whose blocks are a feed-forward layer of four neurons and a hardmax attention layer whose
# matrices have rank one.

net = hm.interpolate(inputs, outputs)
print(net)
print(net.summary())

# %%
# The network is a function. The answer is computed without rounding and rounded once at the end, or not at all:

print(net(inputs[1]))
print(net(inputs[1], exact=True)[0])
print(net(inputs[1], exact=True)[0] == (Fraction(1, 3), Fraction(2)))

# %%
# The proof
# ---------
#
# A certificate evaluates all sequences in exact arithmetic and compares with the targets.

print(net.certify())

# %%
# The stages of the construction: the inputs, the sequences separated on a line, the line from which points are sent to
# the targets (rings). Points that sequences share are nested.

figure = hm.figures.draw_construction(net)

# %%
# Labels instead of targets
# -------------------------
#
# Any labelling of different sets can be compiled, also a random one.

spam = hm.classify_exactly(inputs, ["spam", "ham", "spam"])
print(spam.predict(inputs))

# %%
# Softmax attention works too, at any temperature, and is proved with intervals:

soft = hm.interpolate(inputs, outputs, attention="softmax", temperature=0.1)
print(soft.certify().proved)

# %%
# Share the network
# -----------------
#
# The file has every weight as a fraction. ``hardmax verify net`` proves it again, and so do two programs that share
# no code with this library (:doc:`/howto/check-a-proof`).

folder = Path(tempfile.mkdtemp()) / "net"  # any folder of yours
net.save(folder)
print(hm.verify(folder).proved)
first = json.loads((folder / "network.json").read_text())["blocks"][0]
print(first["U"], first["b"])

# %%
# For gradients or a GPU, the network is converted to a PyTorch module, in floating point:

import torch

module = net.to_torch(torch.float64)
print(module([torch.tensor(inputs[1], dtype=torch.float64)])[0])

# %%
# Where to go next
# ----------------
#
# - :doc:`/howto/compile-a-network`: spreadsheets, several targets, ONNX.
# - :doc:`/papers/interpolation`: which construction to take, and how many blocks each needs.
# - :doc:`/devdocs/interpolation`: the proofs.
