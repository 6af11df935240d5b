r"""
Valid prediction times on chaotic systems
=========================================

Twenty-one chaotic systems in four settings with three seeds: the results of ``hardmax reproduce forecasting-study``. A
dot is a system, the bar the mean over systems, and the number at the end of a line the mean rank among the models.
"""

# sphinx_gallery_capture_repr = ()

from pathlib import Path

import pandas as pd

from hardmax.reproduce import draw_forecasting_summary

rows = pd.read_csv(Path("../../benchmarks/forecasting_study/2026-11-15.csv"))
print(f"{len(rows):,} fits, {rows['system'].nunique()} systems, seeds {sorted(rows['seed'].unique().tolist())}")
figure = draw_forecasting_summary(rows)
