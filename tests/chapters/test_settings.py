"""What the explorer shows is what the claims and the tables of chapter 5 say."""

import pytest

from study.chapters.claims import CLAIMS
from study.chapters.report.settings import METRICS, explored, printed
from study.engine.protocol import FAMILY
from study.stats.table_2 import TABLE_2
from study.stores.plan import load_or_run


@pytest.fixture(scope="module")
def found():
    return explored(range(20, 21))


def test_settings_are_those_that_were_run_with_all_methods(found):
    _, verdicts = found
    family = [("batch_average", reading, 20) for reading in range(1, len(FAMILY) + 1)]
    assert verdicts.index.tolist() == [*family, ("evaluation_set", 1, 20), ("pooled", 1, 20)]


def test_verdicts_are_the_claim_s(found):
    _, verdicts = found
    assert (
        verdicts["batch_average", 3, 20]
        == CLAIMS[0].under(FAMILY[2], load_or_run("family")).outcome
    )
    own = load_or_run("evaluation", inference="evaluation_set", epoch=20)
    assert verdicts["evaluation_set", 1, 20] == CLAIMS[0].judge(own).outcome == "replicated"


def test_accuracies_are_means_over_40_seeds(found):
    accuracies, _ = found
    assert set(accuracies.n) == {40}
    assert len(accuracies) == 10 * 9 * len(METRICS)
    keys = ["inference", "reading", "experiment", "method", "metric"]
    means = accuracies.set_index(keys)["mean"]
    runs = load_or_run("family", epoch=20, experiment="iii", method="wlf_wbn", **FAMILY[5])
    cell = ("batch_average", 6, "iii", "wlf_wbn", "accuracy_balanced")
    assert means[cell] == pytest.approx(runs.accuracy_balanced.mean())
    # Without weights the loss has nothing to normalize.
    plain = [means["batch_average", n, "ii", "lf_sbn", "accuracy_minority"] for n in (2, 6)]
    assert plain[0] == plain[1]


def test_printed_numbers_are_table_2_s():
    paper = printed()
    for row in TABLE_2.itertuples():
        assert paper[row.metric, row.experiment, row.method] == float(row.paper)
    assert paper["accuracy_balanced", "iii", "wlf_wbn"] == pytest.approx((49.3 + 99.4) / 2)
