r"""What sharing the statistics of a batch costs P processes, on paper.

With :math:`\alpha` seconds of latency a message and B bytes a second, n bytes of each process are
gathered in :math:`\alpha \lceil \log_2 P \rceil + (P - 1) n / B` and summed in :math:`2 \alpha
\lceil \log_2 P \rceil + 2 (1 - 1/P) n / B`, the costs of recursive doubling and of halving and
doubling. Nothing overlaps.
"""

from collections.abc import Sequence
from math import ceil, log2

import pandas as pd

FLOAT = 4  # bytes


def gathered_bytes(channels: int) -> int:
    """What a layer sends forward: four numbers about the weights, and two for each channel.

    Examples
    --------
    >>> gathered_bytes(64)
    528
    """
    return FLOAT * (4 + 2 * channels)


def summed_bytes(channels: int) -> int:
    """What a layer sends backward: two sums of each channel."""
    return FLOAT * 2 * channels


def gather_time(size: int, processes: int, latency: float, bandwidth: float) -> float:
    """Seconds until every process has the bytes of all."""
    return latency * ceil(log2(processes)) + (processes - 1) * size / bandwidth


def sum_time(size: int, processes: int, latency: float, bandwidth: float) -> float:
    """Seconds until every process has the sum over all."""
    return 2 * (latency * ceil(log2(processes)) + (1 - 1 / processes) * size / bandwidth)


def step_times(
    channels: Sequence[int],
    parameters: int,
    processes: Sequence[int],
    latency: float,
    bandwidth: float,
) -> pd.DataFrame:
    """Milliseconds a step: the collectives of layers of these channels, and of all gradients."""
    rows = {}
    for p in processes:
        network = p, latency, bandwidth
        rows[p] = {
            "forward": sum(gather_time(gathered_bytes(c), *network) for c in channels),
            "backward": sum(sum_time(summed_bytes(c), *network) for c in channels),
            "gradients": sum_time(FLOAT * parameters, *network),
        }
    return 1000 * pd.DataFrame.from_dict(rows, orient="index").rename_axis("processes")
