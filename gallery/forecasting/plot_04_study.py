r"""
Which forecaster is right for longest
=====================================

Twenty-one chaotic systems, seen in four ways, each three times: the rows of the study that ``hardmax reproduce
forecasting-study`` runs, as it wrote them. A dot is a system, the bar the mean over systems, the number behind a line
the mean rank among the models.
"""

# sphinx_gallery_capture_repr = ()

from pathlib import Path

import pandas as pd

from hardmax.reproduce import draw_forecasting_summary

rows = pd.read_csv(Path("../../benchmarks/forecasting_study/2026-11-15.csv"))
print(f"{len(rows):,} fits, {rows['system'].nunique()} systems, seeds {sorted(rows['seed'].unique().tolist())}")
figure = draw_forecasting_summary(rows)
