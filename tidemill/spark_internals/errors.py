"""Errors of calls into the JVM, under names of ours, and what they say."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError, Py4JJavaError

JavaError: type[Exception] = Py4JError
"""Any call into the JVM that failed, also if the JVM is gone."""
JavaException: type[Exception] = Py4JJavaError
"""A call that the JVM answered with an exception of its own."""
_CALL = re.compile(r"\s+at |\s+\.\.\. \d+ more")
_MESSAGE = re.compile(r"^(?:Exception in thread \"[^\"]*\" |Caused by: |: )(?:[\w.$]+(?:Exception|Error): )?")


def java_text(error: Exception) -> str:
    """The Java exception that ``error`` came from, with its class; '' where it came from none."""
    java = getattr(error, "java_exception", None)
    return "" if java is None else str(java.toString())


def java_says(text: str) -> str:
    """What a Java program that ended, or a call that failed, says itself: the first message and the last
    cause, without the classes of exceptions and the calls between them."""
    lines = [line for line in text.splitlines() if line.strip() and not _CALL.match(line)]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    said = [next((line for line in lines if _MESSAGE.match(line)), lines[0] if lines else ""), *causes[-1:]]
    return ": ".join(dict.fromkeys(_MESSAGE.sub("", line).strip().rstrip(".") for line in said))
