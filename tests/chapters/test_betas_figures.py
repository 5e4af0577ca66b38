"""What the curves over beta show is what they are given."""

import numpy as np
import pandas as pd
import pytest

from study.chapters.betas.figures import beta_curves
from study.stats.intervals import mean_interval

pytestmark = pytest.mark.usefixtures("house_style")


def test_beta_curves_draw_percent_against_powers_of_ten_and_both_ends():
    table = pd.DataFrame(
        {"experiment": e, "reading": r, "method": m, "beta": b, "seed": seed,
         "accuracy_balanced": v + 0.02 * seed}
        for e in ("i", "iii")
        for r in ("reference", "other")
        for m in ("wlf_sbn", "wlf_wbn")
        for b, v in ((1.0, 0.5), (0.0, 0.8), (0.99999, 0.7 if m == "wlf_wbn" else 0.6))
        for seed in (0, 1)
    )  # fmt: skip
    figure = beta_curves(table, "accuracy_balanced", "balanced accuracy")
    assert len(figure.axes) == 4
    last = figure.axes[3]
    standard, weighted, broken = last.lines[0], last.lines[1], last.lines[-1]
    assert np.round(standard.get_xydata(), 6).tolist() == [[0, 81], [5, 61], [6, 51]]
    assert np.round(weighted.get_xydata(), 6).tolist() == [[0, 81], [5, 71], [6, 51]]
    assert broken.get_xdata()[0] == 5.5
    band = last.collections[1].get_paths()[0].vertices
    _, low, high, *_ = mean_interval([0.8, 0.82])
    at_0 = band[band[:, 0] == 0, 1]
    assert [at_0.min(), at_0.max()] == pytest.approx([100 * low, 100 * high])
    ticks = [tick.get_text() for tick in figure.axes[2].get_xticklabels()]
    assert ticks == ["1", "$10^{-2}$", "$10^{-4}$", "0"]
    assert last.get_xticks().tolist() == [0, 2, 4, 6]
    names = [text.get_text() for text in figure.legends[0].texts]
    assert names == ["Weighted + BN", "Weighted + WBN"]
