"""Tied models beyond their depth: the same layer again and again."""

from __future__ import annotations

from ...dynamics.keep_and_stop_rules import Keep
from ...dynamics.simulate import simulate
from ...dynamics.trajectory import Trajectory
from ...errors import InputError
from ...progress import Progress
from ...scalars import as_count, shown
from ..transformer import TextOrIds, Transformer


def continue_depth(
    model: Transformer,
    text: TextOrIds,
    depth: int,
    *,
    feed_forward: bool = True,
    keep: Keep = "all",
    progress: Progress = None,
) -> Trajectory:
    """Trajectory of the tokens of a text through ``depth`` layers of a model whose layers all have the same weights.

    Parameters
    ----------
    model
        A tied model, such as those of the family ALBERT.
    text
        A text, or the numbers of its tokens.
    depth
        Number of layers, also more than the model has.
    feed_forward
        False leaves out the feed-forward network, so that attention acts alone.
    keep
        Layers that are stored, as in :func:`hardmax.simulate`.
    progress
        True, False, None (shown where the work takes long), or a function called with ``(stage, done, total)``.

    Returns
    -------
    Trajectory
        In float64; :func:`hardmax.models.cosine_clusters` counts the clusters of a state.
    """
    if not isinstance(model, Transformer):
        raise InputError("model", shown(model), "must be a transformer", "load one with hm.load_transformer(folder)")
    if not model.tied:
        problem = "has different weights in its layers, so that it ends at its own depth"
        raise InputError("model", model.name, problem, "use a tied model, such as ALBERT")
    layers = as_count("depth", depth, 1)
    exact = model.to("float64")
    layer = exact.layers[0] if feed_forward else exact.layers[0].without_feed_forward()
    return simulate(exact.tokens(text), layer, depth=layers, keep=keep, progress=progress)
