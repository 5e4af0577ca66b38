"""Results on disk: plans, sweeps, stores, and checks that run stored results again."""
