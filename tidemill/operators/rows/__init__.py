"""Rows of an epoch and of state, by key: what the operators' kernels are made of."""
