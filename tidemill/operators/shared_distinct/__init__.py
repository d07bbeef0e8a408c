"""Distinct values that keys of few known values share: each value once, with a bit for every key that has it.

``shared_keys`` numbers the keys and keeps values with their bits. ``operator`` is the kernel of GROUP BY; the
kernel of windows, ``operators.window.shared_values``, keeps the same entries by slice.
"""
