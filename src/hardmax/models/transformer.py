"""A trained transformer: embedding, layers, final normalisation, and embeddings or logits from the last tokens."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch.nn import functional

from ..errors import InputError
from ..scalars import shown
from .layer import Norm, TransformerLayer, moved
from .rules import as_indices
from .tokenisers import AbstractTokeniser, Tokenised, batches

TextOrIds = str | Sequence[int]
"""A text, or the numbers of its tokens."""

# Numbers held at once by a batch in its widest place (units of the feed-forward network): 2^26 are 256 MB in float32.
_MOST_IN_BATCH = 2**26
_DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True, eq=False)
class Embedding:
    """First step of a transformer: from numbers of tokens to points."""

    words: torch.Tensor
    """Point of each token of the vocabulary, shape (vocabulary, e)."""
    places: torch.Tensor | None = None
    """Point of each place, shape (places, e), added to the words."""
    first_place: int = 0
    """Row of ``places`` of the first token."""
    kind: torch.Tensor | None = None
    """Point of the first segment, shape (e,), added to every token (models trained on pairs of texts)."""
    norm: Norm | None = None
    projection: torch.Tensor | None = None
    """Shape (d, e), where words have fewer coordinates than tokens."""
    projection_bias: torch.Tensor | None = None

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        """Tokens at layer 0, shape (batch, tokens, d)."""
        hidden = self.words[ids]
        if self.kind is not None:
            hidden = hidden + self.kind
        if self.places is not None:
            hidden = hidden + self.places[self.first_place : self.first_place + ids.shape[1]]
        hidden = hidden if self.norm is None else self.norm(hidden)
        return hidden if self.projection is None else functional.linear(hidden, self.projection, self.projection_bias)


@dataclass(frozen=True, eq=False)
class Transformer:
    """A trained transformer, loaded by :func:`hardmax.load_transformer`.

    Calling it with a text gives the tokens after the last layer; ``hm.simulate(model.tokens(text), model.layers)``
    gives the tokens after every layer.
    """

    name: str
    """Name of the folder or file."""
    family: str
    """Architecture, for example ``"bert"`` or ``"llama"``."""
    embedding: Embedding
    """From numbers of tokens to the tokens at layer 0."""
    layers: tuple[TransformerLayer, ...]
    """Layers in order; one object repeated where a model uses the same weights at every depth."""
    final_norm: Norm | None
    """Normalisation after the last layer, for pre-norm models."""
    unembedding: torch.Tensor | None
    """Weights of the scores of the next token, shape (vocabulary, d); None for encoders."""
    tokeniser: AbstractTokeniser | None
    """None where the files have none: such a model takes numbers of tokens only."""
    longest: int
    """Largest number of tokens of a text."""
    pooling: str = "mean"
    """Pooling of :meth:`embed`: ``"mean"`` over the last tokens of a text, or the ``"first"`` of them."""
    unit_length: bool = False
    """Whether embeddings are divided by their length."""

    @property
    def causal(self) -> bool:
        """Whether each token sees only those before it."""
        return self.layers[0].causal

    @property
    def tied(self) -> bool:
        """Whether every layer has the same weights, so that the model can run beyond its depth."""
        return all(layer is self.layers[0] for layer in self.layers)

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return self.layers[0].dimension

    @property
    def heads(self) -> int:
        """Number of heads of a layer."""
        return self.layers[0].heads

    @property
    def dtype(self) -> torch.dtype:
        """Type of the numbers of the weights and of everything computed from them."""
        return self.layers[0].dtype

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.embedding.words.device

    @property
    def parameters(self) -> int:
        """Number of weights, each counted once."""
        different = {id(layer): layer for layer in self.layers}.values()
        parts: list[object] = [self.embedding, self.embedding.norm, self.final_norm]
        for layer in different:
            parts += [layer.attention, layer.attention_norm, layer.feed_forward, layer.feed_forward_norm]
        tensors = [one for part in parts if part is not None for one in vars(part).values()]
        tensors = [one for one in [*tensors, self.unembedding] if isinstance(one, torch.Tensor)]
        return sum({one.data_ptr(): one.numel() for one in tensors}.values())

    def to(self, dtype: str | torch.dtype | None = None, device: torch.device | str | None = None) -> Transformer:
        """The model in another dtype or on another device.

        Parameters
        ----------
        dtype
            ``"float32"`` or ``"float64"``; unchanged when left out.
        device
            For example ``"cuda"``; unchanged when left out.

        Returns
        -------
        Transformer
            The same model.
        """
        kind = None if dtype is None else as_dtype(dtype)
        made: dict[int, TransformerLayer] = {}
        for layer in self.layers:
            made.setdefault(id(layer), layer.to(kind, device))
        embedding = moved(self.embedding, kind, device)
        tied = self.unembedding is self.embedding.words
        last = embedding.words if tied else None
        if self.unembedding is not None and not tied:
            last = self.unembedding.to(dtype=kind, device=device)
        norm = None if embedding.norm is None else moved(embedding.norm, kind, device)
        return replace(
            self,
            embedding=replace(embedding, norm=norm),
            layers=tuple(made[id(layer)] for layer in self.layers),
            final_norm=None if self.final_norm is None else moved(self.final_norm, kind, device),
            unembedding=last,
        )

    def with_attention(
        self, rule: object, layers: int | Sequence[int] | None = None, heads: int | Sequence[int] | None = None
    ) -> Transformer:
        """The model with another attention rule in some layers and heads.

        Parameters
        ----------
        rule
            ``"hardmax"``, ``"top-4"``, ``"beta=2"``, ``"uniform"``, ``"zero"``, ``"softmax"`` or a weighting.
        layers
            Number of a layer, or several; all when left out.
        heads
            Number of a head, or several; all when left out.

        Returns
        -------
        Transformer
            With the same weights.

        Examples
        --------
        >>> import hardmax as hm
        >>> model = hm.models.random_transformer(layers=2, heads=2, d=8, vocabulary=20, random_state=0)
        >>> str(model.with_attention("hardmax", layers=1).layers[1].rules[0])
        'hardmax'
        """
        chosen = as_indices("layers", layers, len(self.layers))
        some = as_indices("heads", heads, self.heads)
        made: dict[tuple[int, bool], TransformerLayer] = {}
        for number, layer in enumerate(self.layers):
            changes = number in chosen
            key = id(layer), changes
            if key not in made:
                made[key] = layer.with_rule(rule, some) if changes else layer
        return replace(
            self, layers=tuple(made[id(layer), number in chosen] for number, layer in enumerate(self.layers))
        )

    def without_feed_forward(self) -> Transformer:
        """The model with attention alone in every layer.

        Returns
        -------
        Transformer
            With the same attention weights.
        """
        made: dict[int, TransformerLayer] = {}
        for layer in self.layers:
            made.setdefault(id(layer), layer.without_feed_forward())
        return replace(self, layers=tuple(made[id(layer)] for layer in self.layers))

    def tokenise(self, text: TextOrIds) -> Tokenised:
        """Tokens of a text.

        Parameters
        ----------
        text
            A text, or the numbers of its tokens, which are checked.

        Returns
        -------
        Tokenised
            Numbers and words, special tokens included.
        """
        if isinstance(text, str):
            if self.tokeniser is None:
                raise InputError(
                    "text", shown(text), "cannot be tokenised: the model has no tokeniser", "pass numbers of tokens"
                )
            if not text.strip():
                raise InputError("text", repr(text[:20]), "is empty", "pass a text with at least one word")
            found = self.tokeniser.tokenise(text)
        else:
            ids = _ids(text)
            words = tuple(str(one) if self.tokeniser is None else self.tokeniser.word(one) for one in ids)
            found = Tokenised(ids, words, (False,) * len(ids))
        size = len(self.embedding.words)
        wrong = next((one for one in found.ids if not 0 <= one < size), None)
        if wrong is not None:
            problem = f"is not in the embedding, which has {size} tokens"
            raise InputError("text", f"token {wrong}", problem, "use the tokeniser of the same model")
        if len(found) == 0:
            raise InputError("text", shown(text), "has no token", "pass a text with at least one word")
        if len(found) > self.longest:
            raise InputError(
                "text",
                f"{len(found)} tokens",
                f"is longer than the {self.longest} tokens that the model takes",
                "pass a shorter text, or cut it into parts",
            )
        return found

    def tokens(self, text: TextOrIds) -> np.ndarray:
        """Tokens of a text at layer 0: the embedded words, shape (tokens, d).

        Parameters
        ----------
        text
            A text, or the numbers of its tokens.

        Returns
        -------
        ndarray
            In the dtype of the model.
        """
        found = self.tokenise(text)
        with torch.no_grad():
            return np.asarray(self.embedding(self._tensor([found.ids]))[0].cpu())

    def __call__(self, text: TextOrIds | Sequence[TextOrIds]) -> np.ndarray | list[np.ndarray]:
        """Tokens after the last layer and the final normalisation, shape (tokens, d), for each text.

        Parameters
        ----------
        text
            A text or the numbers of its tokens, or a list of texts.

        Returns
        -------
        ndarray or list of ndarray
            One array per text, in the dtype of the model.
        """
        texts, single = _texts(text)
        found = [np.asarray(one.cpu()) for one in self.hidden([self.tokenise(one) for one in texts])]
        return found[0] if single else found

    def embed(self, text: TextOrIds | Sequence[TextOrIds]) -> np.ndarray:
        """One point per text, shape (d,), or (texts, d) for a list of texts.

        Parameters
        ----------
        text
            A text or the numbers of its tokens, or a list of texts.

        Returns
        -------
        ndarray
            Mean of the last tokens, or the first of them, as the model was trained.
        """
        texts, single = _texts(text)
        found = self.embed_tokenised([self.tokenise(one) for one in texts])
        return np.asarray((found[0] if single else found).cpu())

    def embed_tokenised(self, texts: Sequence[Tokenised]) -> torch.Tensor:
        """One point per tokenised text, shape (texts, d).

        Parameters
        ----------
        texts
            Tokenised texts.

        Returns
        -------
        Tensor
            On the device and in the dtype of the model.
        """
        return self.pooled(self.hidden(texts))

    def pooled(self, last: Sequence[torch.Tensor]) -> torch.Tensor:
        """One point per text from its last tokens, shape (texts, d).

        Parameters
        ----------
        last
            Tokens of each text after the last layer, each of shape (tokens, d).

        Returns
        -------
        Tensor
            In the dtype of the tokens.
        """
        points = torch.stack([one.mean(dim=0) if self.pooling == "mean" else one[0] for one in last])
        return functional.normalize(points, dim=1) if self.unit_length else points

    def logits(self, text: TextOrIds) -> np.ndarray:
        """Scores of the next token after each token, shape (tokens, vocabulary), for causal models.

        Parameters
        ----------
        text
            A text, or the numbers of its tokens.

        Returns
        -------
        ndarray
            Row i scores the token after token i.
        """
        weights = self._unembedding()
        with torch.no_grad():
            return np.asarray((self.hidden([self.tokenise(text)])[0] @ weights.T).cpu())

    def perplexity(self, text: TextOrIds) -> float:
        """Perplexity of a text: exponential of the mean negative log-likelihood of each token given those before it.

        Parameters
        ----------
        text
            A text of at least two tokens, or their numbers.

        Returns
        -------
        float
            1 is certainty; the size of the vocabulary is guessing.
        """
        return math.exp(self.negative_log_likelihood([self.tokenise(text)]))

    def negative_log_likelihood(self, texts: Sequence[Tokenised]) -> float:
        """Mean negative log-likelihood of the tokens of texts, each given those before it in its text.

        Parameters
        ----------
        texts
            Tokenised texts.

        Returns
        -------
        float
            In nats; its exponential is the perplexity.
        """
        self._unembedding()  # refuses models that predict nothing before anything is computed
        for found in texts:
            if len(found) < 2:
                raise InputError("text", f"{len(found)} token", "must have at least two tokens", "pass a longer text")
        total = sum(self.loss(found, last) for found, last in zip(texts, self.hidden(texts), strict=True))
        return total / sum(len(found) - 1 for found in texts)

    def loss(self, text: Tokenised, last: torch.Tensor) -> float:
        """Sum of the negative log-likelihoods of the tokens of a text, each given those before it.

        Parameters
        ----------
        text
            A tokenised text.
        last
            Its tokens after the last layer, shape (tokens, d).

        Returns
        -------
        float
            In nats.
        """
        with torch.no_grad():
            scores = last[:-1] @ self._unembedding().T
            return float(functional.cross_entropy(scores, self._tensor(text.ids[1:]), reduction="sum"))

    def hidden(self, texts: Sequence[Tokenised]) -> list[torch.Tensor]:
        """Last tokens of tokenised texts, each of shape (tokens, d), computed in batches of similar length.

        Parameters
        ----------
        texts
            Tokenised texts.

        Returns
        -------
        list of Tensor
            In the order of the texts, on the device of the model.
        """
        found: dict[int, torch.Tensor] = {}
        network = self.layers[0].feed_forward
        widest = max(4 * self.dimension, 0 if network is None else len(network.up))
        for batch in batches(texts, _MOST_IN_BATCH // widest):
            ids, padding = self.padded([texts[k] for k in batch])
            with torch.no_grad():
                state = self.embedding(ids)
                for layer in self.layers:
                    state = layer.forward(state, padding)
                state = state if self.final_norm is None else self.final_norm(state)
            found.update({k: state[row, : len(texts[k])] for row, k in enumerate(batch)})
        return [found[k] for k in range(len(texts))]

    def states(self, text: Tokenised) -> Iterator[torch.Tensor]:
        """Tokens of one text at layer 0, 1, …, each of shape (tokens, d), without the final normalisation.

        Parameters
        ----------
        text
            A tokenised text.

        Yields
        ------
        Tensor
            One more than there are layers; one state is in memory at a time.
        """
        with torch.no_grad():
            state = self.embedding(self._tensor([text.ids]))
            yield state[0]
            for layer in self.layers:
                state = layer.forward(state)
                yield state[0]

    def _unembedding(self) -> torch.Tensor:
        if self.causal and self.unembedding is None:
            problem = "has no weights for the next token: its files hold the layers only"
            raise InputError("model", self.name, problem, "load the files of the causal language model")
        if self.unembedding is None or not self.causal:
            raise InputError(
                "model", self.name, "is an encoder and does not predict the next token", "use model.embed(text)"
            )
        return self.unembedding

    def padded(self, texts: Sequence[Tokenised]) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Numbers of the tokens of texts, filled up to one length, and where they were filled up.

        Parameters
        ----------
        texts
            Tokenised texts.

        Returns
        -------
        tuple of Tensor
            Numbers, and True for padding, each of shape (texts, tokens); None where all texts are equally long.
        """
        lengths = [len(one) for one in texts]
        most = max(lengths)
        ids = self._tensor([[*one.ids, *[0] * (most - len(one))] for one in texts])
        if min(lengths) == most:
            return ids, None
        return ids, torch.arange(most, device=self.device) >= self._tensor(lengths)[:, None]

    def _tensor(self, numbers: object) -> torch.Tensor:
        return torch.as_tensor(numbers, dtype=torch.int64, device=self.device)

    def __repr__(self) -> str:
        kind = "causal" if self.causal else "encoder"
        depth = f"{len(self.layers)} layers" + (" with the same weights" if self.tied and len(self.layers) > 1 else "")
        size = f"{self.parameters / 1e6:.1f} million weights"
        shape = f"{depth}, {self.heads} heads, d = {self.dimension}, {size}"
        return f"Transformer {self.name!r}: {self.family}, {kind}, {shape}"


def as_dtype(dtype: str | torch.dtype) -> torch.dtype:
    """Type of numbers by name: float32 or float64."""
    found = _DTYPES.get(str(dtype).removeprefix("torch."))
    if found is None:
        raise InputError("dtype", shown(dtype), "must be float32 or float64", 'pass dtype="float64"')
    return found


def _ids(numbers: object) -> tuple[int, ...]:
    array = np.asarray(numbers)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError("text", shown(numbers), "must be a text or a list of numbers of tokens", 'pass "some text"')
    return tuple(int(one) for one in array)


def _texts(text: object) -> tuple[list[TextOrIds], bool]:
    """Texts of an argument, and whether it was a single one."""
    if isinstance(text, str):
        return [text], True
    if not isinstance(text, (Sequence, np.ndarray)):
        raise InputError("text", shown(text), "must be a text or a list of texts", 'pass "some text"')
    if len(text) and isinstance(text[0], (int, np.integer)):
        return [text], True  # type: ignore[list-item]
    if len(text) == 0:
        raise InputError("text", "an empty list", "must have at least one text", 'pass ["some text"]')
    return [*text], False
