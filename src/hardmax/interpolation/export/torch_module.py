"""Networks as PyTorch modules: float64 or float32, on batches of sequences of different lengths, trainable."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from ...errors import InputError
from ..network import NAMES, CompiledNetwork, stacked

_MOST_SCORES = 20_000_000  # padded scores per chunk: 160 MB of float64


class TorchTransformer(nn.Module):
    """Blocks of feed-forward and attention with the weights of an exact network, stacked over the blocks.

    A token that is repeated in a sequence counts once in every mean. Under softmax ``B_left`` holds the exact weights
    divided by the temperature and rounded once, so that the scores are those of temperature one.

    Parameters
    ----------
    weights
        Tensors by name, the block first: ``eta``, ``rho`` of shape (blocks,), ``U`` (blocks, h, d), ``b`` (blocks, h),
        ``W`` (blocks, d, h), and ``B_left``, ``B_right``, ``V_left``, ``V_right`` (blocks, rank, d).
    softmax
        Whether attention is softmax at temperature one; hardmax otherwise.
    """

    eta: nn.Parameter
    U: nn.Parameter
    b: nn.Parameter
    W: nn.Parameter
    rho: nn.Parameter
    B_left: nn.Parameter
    B_right: nn.Parameter
    V_left: nn.Parameter
    V_right: nn.Parameter

    def __init__(self, weights: dict[str, torch.Tensor], *, softmax: bool) -> None:
        super().__init__()
        for name in NAMES:
            self.register_parameter(name, nn.Parameter(weights[name]))
        self.softmax = softmax

    @classmethod
    def from_network(cls, network: CompiledNetwork, dtype: torch.dtype | None = None) -> TorchTransformer:
        """Module with the exact weights rounded to ``dtype``.

        Parameters
        ----------
        network
            Compiled network.
        dtype
            ``torch.float64`` (default) or ``torch.float32``.

        Returns
        -------
        TorchTransformer
            Module on the CPU.
        """
        dtype = torch.float64 if dtype is None else dtype
        if dtype not in (torch.float32, torch.float64):
            raise InputError("dtype", dtype, "must be float32 or float64", "pass dtype=torch.float64")
        arrays = stacked(network.blocks, network.dimension, network.temperature)
        weights = {name: torch.from_numpy(array).to(dtype) for name, array in arrays.items()}
        return cls(weights, softmax=network.temperature is not None)

    def forward(
        self, tokens: torch.Tensor | Sequence[torch.Tensor], mask: torch.Tensor | None = None
    ) -> torch.Tensor | list[torch.Tensor]:
        """Output of every token, in the form of the input.

        Parameters
        ----------
        tokens
            List of tensors of shape (tokens, d), or a padded tensor of shape (batch, tokens, d).
        mask
            Booleans of shape (batch, tokens), true on real tokens, for a padded tensor; all true when left out.

        Returns
        -------
        Tensor or list of Tensor
            Same shapes as ``tokens``; padding is returned unchanged.
        """
        if isinstance(tokens, torch.Tensor):
            if tokens.ndim != 3 or tokens.shape[-1] != self.U.shape[-1]:
                raise InputError(
                    "tokens",
                    f"shape {tuple(tokens.shape)}",
                    f"must have shape (batch, token, {self.U.shape[-1]})",
                    "or pass a list of tensors (token, coordinate)",
                )
            if mask is None:
                mask = torch.ones(tokens.shape[:2], dtype=torch.bool, device=tokens.device)
            flat = self._run(tokens[mask], mask.sum(dim=1).tolist())
            return tokens.masked_scatter(mask.unsqueeze(-1), flat)
        for j, x in enumerate(tokens):
            if not isinstance(x, torch.Tensor) or x.ndim != 2 or x.shape[-1] != self.U.shape[-1]:
                found = f"shape {tuple(x.shape)}" if isinstance(x, torch.Tensor) else f"a {type(x).__name__}"
                wanted = f"must be a tensor of shape (token, {self.U.shape[-1]})"
                raise InputError(f"tokens[{j}]", found, wanted, "pass a list of tensors, or call the ExactTransformer")
        if len(tokens) == 0:
            return []
        lengths = [int(x.shape[0]) for x in tokens]
        results: list[torch.Tensor] = []
        for chunk in _chunks(lengths):
            flat = self._run(torch.cat([tokens[j] for j in chunk]), [lengths[j] for j in chunk])
            results += torch.split(flat, [lengths[j] for j in chunk])
        return results

    def _run(self, x: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        if not len(x):
            return x.to(self.U.dtype)
        place = _padding(lengths).to(x.device)
        counted = _first_occurrences(x, lengths)[place.clamp(min=0)] & (place >= 0)
        x = x.to(self.U.dtype)
        # Zero factors have no effect and no gradient, so skipping them changes nothing.
        values = (self.V_left.flatten(1).any(1) & self.V_right.flatten(1).any(1)).tolist()
        scores = (self.B_left.flatten(1).any(1) & self.B_right.flatten(1).any(1)).tolist()
        eta, rho = self.eta.tolist(), self.rho.tolist()
        for k in range(self.U.shape[0]):
            height = torch.relu(torch.addmm(self.b[k], x, self.U[k].T))
            if eta[k] == 0.0 and not self.training:
                x = height @ self.W[k].T
            else:
                x = torch.addmm(self.eta[k] * x, height, self.W[k].T)
            if values[k]:
                x = self._attend(x, k, place, counted, with_scores=scores[k])
            elif rho[k] != 1.0 or self.training:
                x = self.rho[k] * x
        return x

    def _attend(
        self, x: torch.Tensor, k: int, place: torch.Tensor, counted: torch.Tensor, *, with_scores: bool
    ) -> torch.Tensor:
        real = place >= 0
        padded = x[place.clamp(min=0)]
        value = padded @ self.V_right[k].T
        if with_scores:
            query, key = padded @ self.B_right[k].T, padded @ self.B_left[k].T
            score = query @ key.transpose(1, 2)
            score = score.masked_fill(~counted.unsqueeze(1), -torch.inf)
            if not self.softmax:
                weight = (score == score.amax(dim=-1, keepdim=True)).to(x.dtype)
                weight = weight / weight.sum(dim=-1, keepdim=True)
            else:
                weight = torch.softmax(score, dim=-1)
            mean = weight @ value
        else:
            total = (value * counted.unsqueeze(-1)).sum(dim=1, keepdim=True)
            mean = (total / counted.sum(dim=1).view(-1, 1, 1)).expand_as(value)
        move = (mean @ self.V_left[k])[real]
        # Rows of `place` hold the tokens of a sequence in order, so this is the order of x.
        return self.rho[k] * x + move


def _first_occurrences(x: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    """Whether each token of the flat list is the first of its value in its sequence, shape (tokens,)."""
    position = torch.arange(len(x), device=x.device)
    owner = torch.repeat_interleave(torch.tensor(lengths, device=x.device))
    # Adding zero makes -0.0 and 0.0, which are equal numbers, equal keys.
    keys = torch.cat([owner.unsqueeze(1).double(), x.detach().double() + 0.0], dim=1)
    kinds, kind = torch.unique(keys, dim=0, return_inverse=True)
    first = torch.full((len(kinds),), len(x), device=x.device).scatter_reduce(0, kind, position, "amin")
    return first[kind] == position


def _padding(lengths: list[int]) -> torch.Tensor:
    """Row of the token in the flat list for every sequence and position, shape (sequences, longest); -1 for padding."""
    longest = max(lengths)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    position = np.arange(longest)[None, :]
    table = np.where(position < np.array(lengths)[:, None], starts[:, None] + position, -1)
    return torch.from_numpy(table.astype(np.int64))


def _chunks(lengths: list[int]) -> list[list[int]]:
    """Runs of sequences whose padded score tables stay within memory."""
    chunks: list[list[int]] = [[]]
    longest = 0
    for j, n in enumerate(lengths):
        longest = max(longest, n)
        if chunks[-1] and (len(chunks[-1]) + 1) * longest**2 > _MOST_SCORES:
            chunks.append([])
            longest = n
        chunks[-1].append(j)
    return chunks
