"""Figures and animations of tokens, networks, forecasts, the mean field and words.

Each function is imported when it is first used, so that a figure of tokens does not import what forecasts need.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..drawing.style import new_figure as new_figure
    from ..drawing.words import draw_explanation as draw_explanation
    from .clustering import draw_attention_geometry as draw_attention_geometry
    from .clustering import draw_cluster_sizes as draw_cluster_sizes
    from .clustering import draw_convergence as draw_convergence
    from .clustering import draw_layers_until_decided as draw_layers_until_decided
    from .fields import draw_fields as draw_fields
    from .forecast_diagnostics import draw_backtest as draw_backtest
    from .forecast_diagnostics import draw_eigenvalues as draw_eigenvalues
    from .forecast_diagnostics import draw_lag_attention as draw_lag_attention
    from .forecast_diagnostics import draw_study as draw_study
    from .forecasting import draw_climate as draw_climate
    from .forecasting import draw_forecast as draw_forecast
    from .forecasting import draw_phase_portrait as draw_phase_portrait
    from .interpolation import animate_network as animate_network
    from .interpolation import draw_construction as draw_construction
    from .interpolation_results import draw_block_counts as draw_block_counts
    from .interpolation_results import draw_float_errors as draw_float_errors
    from .interpolation_results import draw_loss_against_decay as draw_loss_against_decay
    from .interpolation_results import draw_training_loss as draw_training_loss
    from .meanfield import draw_distances as draw_distances
    from .meanfield import draw_durations as draw_durations
    from .meanfield import draw_least_distances as draw_least_distances
    from .meanfield import draw_phase_diagram as draw_phase_diagram
    from .meanfield import draw_scaling as draw_scaling
    from .save import figure_bytes as figure_bytes
    from .save import save_figure as save_figure
    from .sphere import draw_angles as draw_angles
    from .sphere import draw_sphere as draw_sphere
    from .text import draw_leader_counts as draw_leader_counts
    from .text import draw_leader_histogram as draw_leader_histogram
    from .text import draw_word_map as draw_word_map
    from .text_layers import animate_explanation as animate_explanation
    from .text_layers import draw_layers as draw_layers
    from .text_results import draw_accuracy_by_dimension as draw_accuracy_by_dimension
    from .text_results import draw_accuracy_by_epoch as draw_accuracy_by_epoch
    from .text_results import draw_faithfulness as draw_faithfulness
    from .text_results import draw_softmax_and_hardmax as draw_softmax_and_hardmax
    from .tokens import animate_tokens as animate_tokens
    from .tokens import draw as draw
    from .tokens import draw_panels as draw_panels
    from .tokens import draw_tokens as draw_tokens
    from .transformers import draw_depth as draw_depth
    from .transformers import draw_heads as draw_heads
    from .transformers import draw_who_attends as draw_who_attends
    from .transformers import draw_word_paths as draw_word_paths
    from .transformers import word_paths as word_paths

_MODULE_OF = {
    "animate_explanation": ".text_layers",
    "animate_network": ".interpolation",
    "animate_tokens": ".tokens",
    "draw": ".tokens",
    "draw_accuracy_by_dimension": ".text_results",
    "draw_accuracy_by_epoch": ".text_results",
    "draw_angles": ".sphere",
    "draw_attention_geometry": ".clustering",
    "draw_backtest": ".forecast_diagnostics",
    "draw_block_counts": ".interpolation_results",
    "draw_climate": ".forecasting",
    "draw_cluster_sizes": ".clustering",
    "draw_construction": ".interpolation",
    "draw_convergence": ".clustering",
    "draw_depth": ".transformers",
    "draw_distances": ".meanfield",
    "draw_durations": ".meanfield",
    "draw_least_distances": ".meanfield",
    "draw_eigenvalues": ".forecast_diagnostics",
    "draw_explanation": "..drawing.words",
    "draw_faithfulness": ".text_results",
    "draw_fields": ".fields",
    "draw_float_errors": ".interpolation_results",
    "draw_forecast": ".forecasting",
    "draw_heads": ".transformers",
    "draw_lag_attention": ".forecast_diagnostics",
    "draw_layers": ".text_layers",
    "draw_layers_until_decided": ".clustering",
    "draw_leader_counts": ".text",
    "draw_leader_histogram": ".text",
    "draw_loss_against_decay": ".interpolation_results",
    "draw_panels": ".tokens",
    "draw_phase_diagram": ".meanfield",
    "draw_phase_portrait": ".forecasting",
    "draw_scaling": ".meanfield",
    "draw_softmax_and_hardmax": ".text_results",
    "draw_sphere": ".sphere",
    "draw_study": ".forecast_diagnostics",
    "draw_tokens": ".tokens",
    "draw_training_loss": ".interpolation_results",
    "draw_who_attends": ".transformers",
    "draw_word_map": ".text",
    "draw_word_paths": ".transformers",
    "figure_bytes": ".save",
    "new_figure": "..drawing.style",
    "save_figure": ".save",
    "word_paths": ".transformers",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_import_module(_MODULE_OF[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
