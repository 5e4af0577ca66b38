"""Messages read off sources, and those of the method as they are raised."""

import pytest
import torch

import wbn
from wbn.analysis.messages import GAP, messages, said

SOURCE = """
import warnings

LOST = "the weights " "are gone"

def outside(label):
    return f"{label} is no class"

def check(x, kind):
    if x < 0:
        raise ValueError("x is " f"{x}, " "below 0")
    try:
        look_up(x)
    except IndexError as error:
        raise ValueError(outside(x)) from None
    except ValueError as error:
        raise ValueError(f"{kind}: {error}") from None
    except KeyError:
        raise
    except OSError:
        raise RuntimeError(LOST)
    warnings.warn(f"{kind} {x}", stacklevel=2)
    warn_if_called_by("update_bn", "forgets")
    raise StopIteration
"""


def test_all_ways_of_saying_something_are_read():
    assert sorted(said(SOURCE)) == [
        ("error", "the weights are gone"),
        ("error", f"x is {GAP}, below 0"),
        ("error", f"{GAP} is no class"),
        ("warning", "update_bn forgets"),
    ]


def test_what_can_not_be_read_is_not_left_out():
    with pytest.raises(TypeError, match="can't read the message text"):
        said("raise ValueError(text)")


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        ("error", lambda: wbn.per_sample([1.0, 2.0], [2])),
        ("error", lambda: wbn.WeightedBatchNorm1d(3)(torch.zeros(2, 4))),
        ("error", lambda: wbn.weighted_mean(torch.ones(2), torch.zeros(2))),
        ("warning", lambda: wbn.convert(torch.nn.Linear(1, 1))),
    ],
)
def test_what_is_raised_is_among_them(kind, call):
    with pytest.raises((ValueError, UserWarning)) as raised:
        call()
    known = messages().query("kind == @kind").message
    parts = known.str.replace(r"\W", " ", regex=True).str.split()
    words = set("".join(c if c.isalnum() or c == "_" else " " for c in str(raised.value)).split())
    assert any(words >= set(own) for own in parts if len(own) > 5)
