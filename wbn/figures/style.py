"""The house style: palette, markers, widths and theme, each typed once."""

from __future__ import annotations

import matplotlib.pyplot as plt

# Okabe and Ito's palette, readable with color-vision deficiencies.
MAJORITY, MINORITY = "#0072B2", "#D55E00"
METHOD_COLORS = {"lf_sbn": "#56B4E9", "wlf_sbn": "#E69F00", "wlf_wbn": "#009E73"}
MARKERS = {"lf_sbn": "s", "wlf_sbn": "^", "wlf_wbn": "o"}
WIDTH = 5.0  # inches, so that text is legible on a phone


def use_house_style() -> None:
    """Set matplotlib's defaults for every figure of the book."""
    plt.rcParams.update(
        {
            "figure.dpi": 150,
            "figure.constrained_layout.use": True,
            "font.size": 11,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": 11,
            "axes.titlelocation": "left",
            "legend.frameon": False,
        }
    )
