"""Results on disk: plans, sweeps, stores, and runs that verify stored results."""
