"""The store and the sweep: nothing lost, nothing done twice, nothing half-written."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import pandas as pd
import psutil
import pytest
import torch
from distributed.client import FutureCancelledError

from study.engine import Protocol
from study.engine.data import ALL_EXPERIMENTS, MNIST, DataSet, Experiment
from study.engine.training import run
from study.stores.provenance import Unit, commit, origin
from study.stores.store import DamagedLine, Store, as_table
from study.stores.sweep import SweepError, plan_units, sweep
from study.stores.verify import agreement, first_epoch_check, reproduce, spot_check, verify

PATIENCE = 600  # seconds: a guard against hanging, which a busy machine must not reach
PROTOCOLS = [Protocol.paper("i", m, hidden=3, epochs=1) for m in ("lf_sbn", "wlf_wbn")]
SCRIPT = """
import sys
from concurrent.futures import ThreadPoolExecutor
from study.engine import Protocol
from study.stores.sweep import sweep
if __name__ == "__main__":
    protocols = [Protocol.paper("i", m, hidden=3, epochs=1) for m in ("lf_sbn", "wlf_wbn")]
    table = sweep(protocols, range(40), sys.argv[1], ThreadPoolExecutor(1), progress=False)
    assert len(table) == 80
"""


@pytest.fixture(scope="module")
def here():
    """An executor in this process."""
    with ThreadPoolExecutor(1) as executor:
        yield executor


@pytest.fixture(scope="module")
def finished(tmp_path_factory, here):
    """A store with both protocols and seeds 0 to 11, and its table."""
    folder = tmp_path_factory.mktemp("finished")
    return folder, sweep(PROTOCOLS, range(12), folder, here, progress=False)


@pytest.fixture
def copy(finished, tmp_path):
    """A copy of that store, to be damaged."""
    return shutil.copytree(finished[0], tmp_path / "store")


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_table_is_what_run_gives_in_the_order_asked_for(finished):
    expected = [run(p, range(12), progress=False) for p in PROTOCOLS]
    pd.testing.assert_frame_equal(finished[1], pd.concat(expected, ignore_index=True))


def test_second_call_reads_and_runs_nothing(finished, here):
    before = contents(finished[0])
    again = sweep(PROTOCOLS[::-1] + PROTOCOLS, range(12), finished[0], here, progress=False)
    assert contents(finished[0]) == before
    assert set(again.columns) == set(finished[1].columns)
    assert again.method.tolist() == ["wlf_wbn"] * 12 + ["lf_sbn"] * 12


def test_units_tell_their_origin(finished):
    unit = Unit(PROTOCOLS[0].resolved(), tuple(range(10)))
    made = Store(finished[0]).find([unit])[unit]
    assert Protocol.from_dict(made["protocol"]) == unit.protocol
    assert made["sources"] == commit()
    assert made["data"] == MNIST.checksum
    assert {"seeds", "versions", "cpu", "threads", "date", "seconds"} <= made.keys()
    assert {"python", "torch", "wbn"} == made["versions"].keys()


def test_units_with_gaps_in_their_seeds_have_their_own_names():
    whole, gap = plan_units(PROTOCOLS[:1], range(4)), plan_units(PROTOCOLS[:1], [0, 3])
    assert whole[0].name != gap[0].name
    assert len(plan_units(PROTOCOLS + PROTOCOLS, range(12))) == 4


def test_a_damaged_unit_is_named_and_computed_again(copy, finished, here):
    file = copy / "runs.jsonl"
    damaged = file.read_bytes().replace(b'"epoch": 1', b'"epoch": 2', 1)
    file.write_bytes(damaged)
    with pytest.warns(DamagedLine, match="line 1, i_"):
        table = sweep(PROTOCOLS, range(12), copy, here, progress=False)
    pd.testing.assert_frame_equal(table, finished[1])
    assert file.read_bytes().startswith(damaged)


def test_units_of_other_commits_are_taken_as_they_are(finished, tmp_path, here):
    for unit, record in Store(finished[0]).find(plan_units(PROTOCOLS, range(12))).items():
        Store(tmp_path).write(unit, as_table([record]), origin(1.0) | {"sources": "older"})
    before = contents(tmp_path)
    table = sweep(PROTOCOLS, range(12), tmp_path, here, progress=False)
    pd.testing.assert_frame_equal(table, finished[1])
    assert contents(tmp_path) == before


def test_a_refresh_runs_all_again_and_adds_what_is_new(copy, finished, here):
    unit, *_ = plan_units(PROTOCOLS, range(12))
    store, before = Store(copy), contents(copy)["runs.jsonl"]
    store.write(unit, store.read(unit).assign(train_loss=9.0), origin(1.0))
    assert sweep(PROTOCOLS, range(12), copy, here, progress=False).train_loss.max() == 9
    table = sweep(PROTOCOLS, range(12), copy, here, refresh=True, progress=False)
    pd.testing.assert_frame_equal(table, finished[1])
    after = contents(copy)["runs.jsonl"]
    assert after.startswith(before)
    assert len(after.splitlines()) == len(before.splitlines()) + 2
    assert sweep(PROTOCOLS, range(12), copy, here, progress=False).equals(table)


def test_an_unusable_folder_fails_before_any_training(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot write to the store"):
        sweep(PROTOCOLS, range(2), tmp_path / "file", executor=object())


def test_a_failing_unit_does_not_stop_the_others(tmp_path, here):
    raw = Protocol.paper(
        "i", "wlf_wbn", hidden=3, epochs=1, weighting="class_balanced", beta=0.999, scale="raw"
    )
    with pytest.raises(SweepError, match=rf"(?s)1 of 2 units failed.*{raw.hash}.*larger weights"):
        sweep([raw, PROTOCOLS[0]], [0], tmp_path, here, progress=False)
    assert [unit.protocol.method for unit, _ in Store(tmp_path).units()] == ["lf_sbn"]


def in_memory(train):
    """Inputs and labels of two classes that no file holds."""
    labels = torch.arange(2).repeat(40 if train else 10)
    return labels[:, None] + torch.rand(len(labels), 3, generator=torch.Generator()), labels


def test_only_the_data_that_the_units_name_must_be_there(tmp_path, monkeypatch):
    toy = Experiment(DataSet("toy", "made here", (3,), 2, 2.0, in_memory), {0: None, 1: 20})
    monkeypatch.setitem(ALL_EXPERIMENTS, "toy", toy)
    monkeypatch.setenv("WBN_DATA", str(tmp_path / "nothing"))
    monkeypatch.setattr("study.stores.sweep.LocalProcesses", lambda number: ThreadPoolExecutor(1))
    made = Protocol.paper("toy", "wlf_wbn", hidden=3, epochs=1)
    assert len(sweep([made], [0, 1], tmp_path / "store", progress=False)) == 2
    monkeypatch.setattr("study.stores.sweep.LocalProcesses", None)  # no process may be started
    with pytest.raises(FileNotFoundError, match=r"no MNIST in .*nothing"):
        sweep([made, PROTOCOLS[0]], [2], tmp_path / "store", progress=False)


class Elsewhere(Executor):
    """An executor that answers each unit with what it is given, or raises it."""

    def __init__(self, answer):
        self.answer = answer

    def submit(self, function, unit):
        future = Future()
        try:
            future.set_result(self.answer(unit))
        except Exception as error:
            future.set_exception(error)
        return future


def test_rows_of_workers_with_other_sources_are_not_stored(tmp_path):
    def run_elsewhere(unit):
        return run(unit.protocol, unit.seeds, progress=False), origin(1.0), "0ld0ld0ld0ld"

    with pytest.raises(SweepError, match=r"other source files \(0ld0ld0ld0ld.*restart the workers"):
        sweep(PROTOCOLS[:1], [0], tmp_path, Elsewhere(run_elsewhere), progress=False)
    assert list(tmp_path.iterdir()) == []


def test_a_cause_that_strikes_many_units_is_told_once(tmp_path):
    def lost(unit):
        raise FutureCancelledError(unit.name, "the scheduler is gone")

    with pytest.raises(SweepError) as failed:
        sweep(PROTOCOLS, range(90), tmp_path, Elsewhere(lost), progress=False)
    message = str(failed.value)
    assert message.startswith("18 of 18 units failed")
    assert message.count("the scheduler is gone") == 1
    assert "and 15 more" in message


def test_a_killed_local_worker_is_replaced_and_nothing_is_lost(tmp_path, here):
    me = psutil.Process()
    before = set(me.children())
    with ThreadPoolExecutor(1) as thread:
        job = thread.submit(sweep, PROTOCOLS, range(60), tmp_path / "killed", progress=False)
        while not Store(tmp_path / "killed").units():
            assert not job.done()
        for child in set(me.children()) - before:
            if "spawn_main" in " ".join(child.cmdline()):
                child.kill()
                break
        table = job.result()
    expected = sweep(PROTOCOLS, range(60), tmp_path / "whole", here, progress=False)
    pd.testing.assert_frame_equal(table, expected, check_exact=True)


@pytest.fixture
def command(tmp_path):
    """A sweep of eight units in a process of its own, into the folder store."""
    (tmp_path / "script.py").write_text(SCRIPT)
    return [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "store")]


def test_killed_and_started_again_it_goes_on_to_the_same_bits(command, tmp_path, here):
    store = tmp_path / "store"
    with subprocess.Popen(command) as job:
        while not Store(store).units():
            assert job.poll() is None
        job.kill()
    landed = Store(store).units()
    assert len(landed) < 8
    resumed = sweep(PROTOCOLS, range(40), store, here, progress=False)
    assert len(contents(store)["runs.jsonl"].splitlines()) == 8  # nothing is run twice
    assert set(landed) < set(Store(store).units())
    whole = sweep(PROTOCOLS, range(40), tmp_path / "whole", here, progress=False)
    pd.testing.assert_frame_equal(resumed, whole, check_exact=True)


def test_two_processes_share_a_store(command, tmp_path):
    jobs = [subprocess.Popen(command) for _ in range(2)]
    assert [job.wait() for job in jobs] == [0, 0]
    (content,) = contents(tmp_path / "store").values()
    assert len(content.splitlines()) == 8
    assert len(Store(tmp_path / "store").find(plan_units(PROTOCOLS, range(40)))) == 8


def test_verify_finds_the_same_bits_and_a_changed_number(copy):
    honest = verify(copy, sample=2, seed=0)
    assert honest.verdict.tolist() == ["identical", "identical"]
    assert spot_check(copy, sample=2) == "2 of 2 blocks of seeds reproduced"
    assert verify(copy, sample=2, seed=0, max_seconds=0.0).empty
    store = Store(copy)
    for unit in plan_units(PROTOCOLS, range(12)):
        table = store.read(unit)
        store.write(
            unit, table.assign(accuracy_minority=table.accuracy_minority * 0.9), origin(0.1)
        )
    assert set(verify(copy, sample=4, seed=0).verdict) == {"disagrees"}
    assert spot_check(copy) == "0 of 1 blocks of seeds reproduced"


def test_first_epoch_check_looks_at_the_first_epoch_of_the_first_seed(tmp_path, here):
    protocol, store = Protocol.paper("i", "wlf_wbn", hidden=3, epochs=2), Store(tmp_path)
    table = sweep([protocol], [3, 4], store, here, progress=False)
    (unit,) = plan_units([protocol], [3, 4])

    def checked(changed):
        half = table.accuracy_majority.where(~changed, table.accuracy_majority / 2)
        store.write(unit, table.assign(accuracy_majority=half), origin(0.1))
        return first_epoch_check(tmp_path)

    first = (table.epoch == 1) & (table.seed == 3)
    assert checked(~first) == "first epoch of one run reproduced"
    assert checked(first) == "first epoch of one run not reproduced"


def test_verify_names_damage_and_judges_the_rest(copy):
    file = copy / "runs.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"epoch": 1', b'"epoch": 2', 3))
    with pytest.warns(DamagedLine):
        assert verify(copy, sample=4, seed=0).verdict.tolist() == ["identical"]


def test_reproduce_recomputes_everything_and_compares(copy, tmp_path, here):
    result = reproduce(copy, tmp_path / "fresh", here)
    assert result.verdict.tolist() == ["identical"] * 4


def test_agreement_is_close_early_and_statistical_later():
    table = pd.DataFrame(
        [
            {"inference": "pooled", "seed": s, "epoch": e} | dict.fromkeys(
                ("accuracy_majority", "accuracy_minority", "accuracy_overall"), 0.8 + 0.02 * (s % 5)
            )
            for s in range(10) for e in (1, 10)
        ]
    )  # fmt: skip

    def moved(epoch, by):
        return table.assign(accuracy_minority=table.accuracy_minority + by * (table.epoch == epoch))

    assert agreement(table, moved(1, 0.01)) == "agrees"
    assert agreement(table, moved(1, 0.03)) == "disagrees"
    assert agreement(table, moved(10, 0.03)) == "agrees"
    assert agreement(table, moved(10, 0.08)) == "disagrees"
    assert agreement(table, table[table.seed > 0]) == "disagrees"
    assert agreement(table, moved(1, float("nan"))) == "disagrees"
    assert agreement(table, moved(10, float("nan"))) == "disagrees"
    losses = table.assign(train_loss=0.3, nll=0.4)
    assert agreement(losses, losses.assign(train_loss=0.8)) == "disagrees"
    assert agreement(losses, losses.assign(nll=0.9)) == "disagrees"
    assert agreement(losses, losses.assign(nll=0.401)) == "agrees"
    later = table[table.epoch == 10]
    one = later[later.seed == 0]
    assert agreement(one, one.assign(accuracy_minority=0.5)) == "undecided"
    assert agreement(later, later.assign(accuracy_minority=0.5)) == "disagrees"
    many = table.rename(columns={"accuracy_minority": "accuracy_7"})
    assert agreement(many, many.assign(accuracy_7=0.5)) == "disagrees"


def test_processes_of_a_killed_sweep_end_too(tmp_path):
    code = (
        "from study.engine import Protocol\n"
        "from study.stores.sweep import sweep\n"
        "if __name__ == '__main__':\n"
        "    long = Protocol.paper('i', 'lf_sbn', hidden=3, epochs=2000)\n"
        "    quick = Protocol.paper('i', 'lf_sbn', hidden=3, epochs=1)\n"
        f"    sweep([quick, long], [0], {str(tmp_path / 'store')!r}, progress=False)\n"
    )
    (tmp_path / "script.py").write_text(code)
    with subprocess.Popen([sys.executable, str(tmp_path / "script.py")]) as job:
        while not Store(tmp_path / "store").units():
            assert job.poll() is None
        children = psutil.Process(job.pid).children()
        job.kill()
    assert children
    assert psutil.wait_procs(children, timeout=PATIENCE)[1] == []


def test_tqdm_disable_silences_the_bar(tmp_path):
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from study.engine import Protocol\n"
        "from study.stores.sweep import sweep\n"
        "quick = Protocol.paper('i', 'lf_sbn', hidden=3, epochs=1)\n"
        f"sweep([quick], [0], {str(tmp_path / 'store')!r}, ThreadPoolExecutor(1))\n"
    )
    environment = os.environ | {"TQDM_DISABLE": "1"}
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, env=environment, capture_output=True, check=True).stderr == b""
