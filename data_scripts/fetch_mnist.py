"""Fetch MNIST and verify it: ``python data_scripts/fetch_mnist.py [--folder DIR]``.

The same as ``wbn data``, for a Python with nothing installed: the package's module is run as a
file, since importing the package would need torch.
"""

import runpy
from pathlib import Path

FETCH = Path(__file__).resolve().parents[1] / "wbn" / "experiments" / "fetch.py"

if __name__ == "__main__":
    runpy.run_path(str(FETCH), run_name="__main__")
