"""Pictures: tokens and their leaders, the geometry of attention, results, the mean field, forecasts, and films."""

from ._style import new_figure as new_figure
from .animate import animate_tokens as animate_tokens
from .attention import draw_attention_geometry as draw_attention_geometry
from .clustering_results import draw_cluster_sizes as draw_cluster_sizes
from .clustering_results import draw_convergence as draw_convergence
from .clustering_results import draw_layers_until_decided as draw_layers_until_decided
from .fields import draw_fields as draw_fields
from .forecast_diagnostics import draw_backtest as draw_backtest
from .forecast_diagnostics import draw_eigenvalues as draw_eigenvalues
from .forecast_diagnostics import draw_lag_attention as draw_lag_attention
from .forecast_diagnostics import draw_study as draw_study
from .forecasting import draw_climate as draw_climate
from .forecasting import draw_forecast as draw_forecast
from .forecasting import draw_phase_portrait as draw_phase_portrait
from .meanfield import draw_distances as draw_distances
from .meanfield import draw_durations as draw_durations
from .meanfield import draw_phase_diagram as draw_phase_diagram
from .meanfield import draw_scaling as draw_scaling
from .save import figure_bytes as figure_bytes
from .save import save_figure as save_figure
from .sphere import draw_angles as draw_angles
from .sphere import draw_sphere as draw_sphere
from .tokens import draw as draw
from .tokens import draw_panels as draw_panels
from .tokens import draw_tokens as draw_tokens
