"""Weighted batch normalization for class-weighted losses (Yasuda and Ueno, 2019).

`wbn.api` lists what is public. It is imported when the first of its names is used, so that
`wbn --help` doesn't wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from wbn.api import *  # noqa: F403
else:

    def __getattr__(name: str) -> object:
        api = import_module("wbn.api")
        public = {public: getattr(api, public) for public in ("__all__", *api.__all__)}
        globals().update(public)
        if name in public:
            return public[name]
        raise AttributeError(f"module 'wbn' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *import_module("wbn.api").__all__})
