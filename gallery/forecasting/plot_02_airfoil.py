r"""
An airfoil past its flutter speed
=================================

A typical section with a cubic pitch spring, released at several angles, ends on a limit cycle. The model learns from
five releases and forecasts a sixth from its first samples. Its linear path can be read as a dynamic mode
decomposition: modes on the unit circle neither grow nor decay, and their angle is their frequency.
"""

# sphinx_gallery_capture_repr = ()

import numpy as np

import hardmax as hm
from hardmax.datasets import TypicalSection, airfoil
from hardmax.figures import draw_eigenvalues, draw_forecast, draw_lag_attention

print(f"flutter speed {TypicalSection().flutter_speed():.4f}, flown at 7.5")

released = [airfoil(250, initial_pitch=angle) for angle in (0.02, 0.08, 0.15, 0.22, 0.3)]
new = airfoil(250, initial_pitch=0.12)

model = hm.TimeDelayedTransformer(random_state=0).fit([run.values for run in released], dt=new.dt)
ahead = model.forecast(180, window=new.values[:60])
figure = draw_forecast(new.values[:60], ahead, dt=new.dt, names=new.names, truth=new.values[60:240])

# %%
# The largest error of the forecast, in standard deviations:

error = np.abs(ahead.values - new.values[60:240]) / new.values.std(axis=0)
print(f"{error.max():.1e}")

# %%
# The eigenvalues of the linear path, and of the learned map at the end of the new run:

figure = draw_eigenvalues(model, window=new.values).figure

# %%
# Attention weights of the latest sample. They describe the model and are no evidence of causes: uniform attention
# forecasts about as well.

windows = np.stack([new.values[k - model.window : k] for k in range(60, 250, 10)])
figure = draw_lag_attention(model, windows).figure
