"""Whatever a plan says, it is read, or refused in one line that names the file."""

import os
import string
from collections import Counter
from dataclasses import fields

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from study.engine.protocol import Protocol
from study.stores.plan import SEEDS, read_plan

EXAMPLES = 2000 if os.environ.get("WBN_SOAK") else 60
fuzzed = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

VALID = {
    "experiment": ["i", "lt10"],
    "method": ["wlf_sbn", "wlf_wbn"],
    "weighting": "class_balanced",
    "beta": [0.9, 1],
    "inference": ["pooled", "batch_average"],
    "eval_epochs": [[1, 2], [5]],
    "adam_betas": [0.9, 0.999],
    "epochs": 5,
}
TRIED = Counter()
NAMES = [field.name for field in fields(Protocol)]
LONGEST = 200 + len(", ".join(NAMES))  # of a refusal: an unknown choice is told all that there are

numbers = st.one_of(
    st.integers(),
    st.integers(0, 3),
    st.sampled_from([10**9, 10**30, 10**400, -1, 2**63]),
    st.floats(),
    st.sampled_from([0.5, 1e-3, 1e300, -0.0]),
)
texts = st.one_of(st.text(), st.sampled_from(["i", "lf_sbn", "pooled", "none", "\n", "\x00", "é"]))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts, st.dates(), st.times(), st.datetimes()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
names = st.one_of(st.sampled_from(NAMES), texts)
tables = st.builds(
    lambda more, without: {k: v for k, v in (VALID | more).items() if k not in without},
    st.dictionaries(names, values, max_size=4),
    st.sets(st.sampled_from([*VALID]), max_size=2),
)


def toml(value):
    """A value as TOML writes it."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()  # none is no value of TOML, and a mistake
    if isinstance(value, str):
        plain = {*string.ascii_letters, *string.digits, "_", "é", "["}
        escaped = [c if c in plain else rf"\U{ord(c):08x}" for c in value]
        return f'"{"".join(escaped)}"'
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{toml(k)} = {toml(v)}' for k, v in value.items())}}}"
    return value.isoformat() if hasattr(value, "isoformat") else repr(value)


def plan_text(seeds, grids):
    lines = [f"seeds = {toml(seeds)}"]
    for grid in grids:
        lines += ["[[grid]]", *(f"{toml(k)} = {toml(v)}" for k, v in grid.items())]
    return "\n".join(lines)


def read_or_refused(path):
    """Protocols that can be hashed, or a refusal in a line that names the file."""
    try:
        protocols, seeds = read_plan(path)
    except ValueError as error:
        refusal = str(error)
    else:
        assert 1 <= len(seeds) <= SEEDS.high
        assert all(len(protocol.hash) == 12 for protocol in protocols[:5])
        return protocols
    assert refusal.startswith(str(path))
    assert len(refusal.splitlines()) == 1
    assert len(refusal) < len(str(path)) + LONGEST
    return None


def test_the_plan_that_is_mutated_is_valid(tmp_path):
    (path := tmp_path / "plan.toml").write_text(plan_text(3, [VALID]), encoding="utf-8")
    assert len(read_or_refused(path)) == 16


@fuzzed
@given(seeds=st.one_of(st.integers(1, 3), values), grids=st.lists(tables, max_size=2))
def test_a_plan_with_odd_values_is_read_or_refused(tmp_path, seeds, grids):
    (path := tmp_path / "plan.toml").write_text(plan_text(seeds, grids), encoding="utf-8")
    TRIED["plans with odd values"] += 1
    read_or_refused(path)


@st.composite
def damaged(draw):
    """The bytes of a valid plan with pieces cut out, doubled, or put in."""
    content = plan_text(2, [VALID, VALID]).encode()
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = start + draw(st.integers(0, 40))
        piece = draw(
            st.one_of(
                st.binary(max_size=8),
                st.just(content[start:end] * 2),
                texts.map(lambda text: text.encode("utf-8", "surrogatepass")),
                st.sampled_from([b"[" * 5000, b"{a=" * 5000, b"9" * 5000, b"0x" + b"f" * 5000]),
            )
        )
        content = content[:start] + piece + content[end:]
    return content


@fuzzed
@given(content=damaged())
def test_a_plan_with_damaged_text_is_read_or_refused(tmp_path, content):
    (path := tmp_path / "plan.toml").write_bytes(content)
    TRIED["plans with damaged text"] += 1
    read_or_refused(path)


@fuzzed
@given(table=st.one_of(tables, values, st.dictionaries(st.integers() | texts, values, max_size=3)))
def test_a_table_is_a_protocol_or_refused(table):
    TRIED["tables in the place of protocols"] += 1
    try:
        protocol = Protocol.from_dict(table)
    except ValueError as error:
        refusal = str(error)
    else:
        assert Protocol.from_dict(protocol.to_dict()).hash == protocol.hash
        return
    assert len(refusal.splitlines()) == 1
