"""The compiled part of wbn, which is built where there is a C++ compiler and left out elsewhere."""

import sys

from setuptools import Extension, setup

EXACT = ["-ffp-contract=off"]  # the same bits on every processor
FAST = ["-O3", "-fno-wrapv", "-fno-math-errno", "-fno-trapping-math"]
OPENMP = ["-fopenmp"] if sys.platform == "linux" else []  # elsewhere on one thread

setup(
    ext_modules=[
        Extension(
            "wbn._native",
            ["wbn/native/module.cpp"],
            depends=["wbn/native/batch.h"],
            extra_compile_args=["-std=c++17", *EXACT, *FAST, *OPENMP],
            extra_link_args=OPENMP,
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
