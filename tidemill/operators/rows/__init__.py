"""Building blocks of the operators' kernels: rows of an epoch and of state, by key."""
