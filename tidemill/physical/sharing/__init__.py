"""Merges operators of a job that differ only in their columns. Other packages import ``operators``.

``operators`` finds and replaces them, and ``merge_scans`` merges their inputs. ``aggregates``, ``windows``
and ``joins`` define for each family which operators can be merged, and what each reader gets.
"""
