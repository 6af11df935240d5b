"""The probe: measurements of a trained transformer on texts, beside chance levels, controls and the theory."""

from .hypotheses import weight_figures as weight_figures
from .interventions import Intervention as Intervention
from .measure import probe as probe
from .report import ProbeReport as ProbeReport
from .report import load_report as load_report
from .states import continue_depth as continue_depth
from .states import cosine_clusters as cosine_clusters
from .tables import verdict as verdict
