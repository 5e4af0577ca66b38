"""Fetch MNIST and verify it: ``python data_scripts/fetch_mnist.py [--folder DIR]``.

The same as ``wbn data``, for a Python with nothing installed.
"""

import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]

# Folders stand for the packages, since the engine's __init__.py would need torch.
for name in ("study", "study.engine"):
    sys.modules[name] = ModuleType(name)
    sys.modules[name].__path__ = [str(ROOT.joinpath(*name.split(".")))]

from study.engine.fetch import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
