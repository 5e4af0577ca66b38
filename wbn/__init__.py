"""Weighted batch normalization for class-weighted losses (Yasuda and Ueno, 2019).

`wbn.api` lists what is public. It is imported when the first of its names is used, so that
`wbn --help` doesn't wait for torch. Nothing else is imported here either: until the command's
first line has run, Ctrl-C gives Python's traceback.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False  # the same to type checkers as the one of typing, which takes long to import
if TYPE_CHECKING:
    from wbn.api import *  # noqa: F403
else:

    def __getattr__(name: str) -> object:
        import wbn.api as api

        public = {public: getattr(api, public) for public in ("__all__", *api.__all__)}
        globals().update(public)
        if name in public:
            return public[name]
        raise AttributeError(f"module 'wbn' has no attribute {name!r}")

    def __dir__() -> list[str]:
        import wbn.api as api

        return sorted({*globals(), *api.__all__})
