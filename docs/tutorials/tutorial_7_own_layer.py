r"""
Write a layer of your own
=========================

The library runs any rule that moves tokens. In this lesson we write a layer, use it in functions of the library,
combine existing parts, and check the layer against an independent computation.
"""

# %%
# A class with one method
# -----------------------
#
# A layer is a frozen dataclass with the method ``step``: it takes tokens (a float64 tensor of shape ``(token,
# coordinate)``) and their weights, and returns the tokens after the layer. In this one each token moves towards the
# *second best* token.

from dataclasses import dataclass

import numpy as np
import torch

import hardmax as hm


@dataclass(frozen=True)
class SecondBest(hm.AbstractLayer):
    """Each token moves towards the token with the second largest score."""

    rate: float

    def choose(self, tokens, queries=slice(None)):
        """The token that each token attends to; with this method the layer has leaders and figures."""
        scores = tokens[queries] @ tokens.T
        return hm.Choice.of(scores.topk(2, dim=1).indices[:, 1])

    def step(self, tokens, weights):
        """The tokens after one layer."""
        return torch.lerp(tokens, tokens[self.choose(tokens).first], self.rate)


tokens = hm.make_tokens("gaussian", 60, 2, random_state=0)
run = hm.simulate(tokens, SecondBest(0.3), depth=40)
print(run)
print(run.outcome)

# %%
# Because the layer says what tokens attend to (``choose``), leaders, clusters and pictures work.

print("clusters:", len(hm.clusters(run)))
figure = hm.draw_panels(run, layers=[0, 2, 8, 40])

# %%
# NumPy in gives NumPy out, tensors give tensors, and invalid input gives an error with a remedy:

print(type(SecondBest(0.3)(tokens)).__name__, type(SecondBest(0.3)(torch.from_numpy(tokens))).__name__)
try:
    hm.simulate(tokens, SecondBest(0.3), depth=-1)
except hm.InputError as error:
    print(error)

# %%
# Check it
# --------
#
# A loop written from the definition is the best test of a layer.


def slow_second_best(points, rate):
    """The same rule in plain loops."""
    moved = []
    for point in points:
        scores = [float(point @ other) for other in points]
        second = sorted(range(len(points)), key=lambda j: -scores[j])[1]
        moved.append((1 - rate) * point + rate * points[second])
    return np.array(moved)


np.testing.assert_allclose(SecondBest(0.3)(tokens), slow_second_best(tokens, 0.3))

# %%
# Parts that exist
# ----------------
#
# Often no class is needed: :class:`hardmax.AttentionLayer` combines scores, masks, weights, values, moves and
# normalisation.

mixed = hm.AttentionLayer(
    weighting=hm.TopK(4, beta=2.0), move=hm.ResidualStep(0.1), pre_norm=hm.LayerNorm(), causal=True
)
print(mixed)
print(hm.simulate(tokens, [mixed, SecondBest(0.3)] * 5))

# %%
# A weighting of your own fits into it as well. This one gives every token in sight a weight that grows with the
# square of a positive score.


@dataclass(frozen=True)
class Squares(hm.AbstractWeighting):
    """Weights in proportion to the square of positive scores."""

    def weights(self, scores, seen, mass):
        """Weights of a block of rows; `seen` is the mask, `mass` the weight of each token."""
        squares = torch.where(seen, mass * scores.clamp(min=0.0) ** 2, 0.0)
        return squares / squares.sum(dim=-1, keepdim=True).clamp(min=1e-300)


print(hm.simulate(tokens, hm.AttentionLayer(weighting=Squares(), move=hm.ConvexStep(0.5)), depth=10).outcome)

# %%
# Continuous time
# ---------------
#
# A function that returns velocities is a flow.

flow = hm.CallableFlow(lambda z, w: torch.tanh(z @ z.T) @ z / len(z) - z)
print(hm.simulate(tokens, flow, time=2.0, integrator="rk4").outcome)

# %%
# Where to go next
# ----------------
#
# - :doc:`/howto/attention-layers`: all parts, layers by depth, layers of torch.
# - :doc:`/howto/noise-and-flows`: noise, momentum, parameters that depend on time.
# - :doc:`/project/contributing`: how to add a layer to the library, with contract tests.
