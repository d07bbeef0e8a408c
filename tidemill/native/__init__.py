"""The compiled core: inner loops in Rust (``native/``), called through ``ctypes``.

It is optional. Each function has a twin of NumPy and Arrow, which gives the same values bit by bit. The twin
is used where the library is missing, is switched off, or says that it is unsure.
"""
