"""Rows of a Python program as tables: Arrow data, pandas frames and lists (``arrow_in``), and Spark's
DataFrames (``dataframe_types``).
"""
