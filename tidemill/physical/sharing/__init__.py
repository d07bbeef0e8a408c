"""Operators of a job that differ in their columns alone are one. Others import ``operators``.

``operators`` finds them and puts one in their place; ``merge_scans`` brings their inputs together;
``aggregates``, ``windows`` and ``joins`` say of each family what may be one, and what a reader gets of it.
"""
