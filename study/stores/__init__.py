"""Rows kept: plans, sweeps, stores, and runs made again to verify them."""
