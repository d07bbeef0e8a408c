"""Triggers: when windows show what they have.

``trigger`` says which windows are shown in an epoch, and when a window is shut: late rows are judged by it,
and state goes by it. ``shown`` remembers what a window has shown, ``timers`` wake windows that wait in
processing time. ``processing_time`` runs a kernel by the clock in place of the watermark.
"""
