"""Parts of URLs, and IPv4 addresses as numbers.

A URL is read as ``java.net.URL`` reads it: only schemes that Java knows, blanks allowed inside but not around
it, everything else of the parts as written.
"""

from __future__ import annotations

from tidemill.functions.api import ScalarFunction, SparkCall
from tidemill.functions.sharing import share
from tidemill.functions.signatures import AS_BIGINT, CHARACTER, fixed, nullable, signature
from tidemill.functions.spark_text import quoted
from tidemill.types import logical as t

_SCHEME = r"(?i:https?|ftp|file|jar)"
_USER = r"[^/?#@]*@"
_HOST = r"\[[^\]/?#]*\]|[^/?#@:]*"
_AUTHORITY = rf"(?:{_USER})?(?:{_HOST})(?::[0-9]*)?"
_PATH = r"[^?#]*"
_QUERY = r"[^#]*"
# Each pattern matches the whole URL; its one group is the part.
_PARTS = {
    "PROTOCOL": rf"\A({_SCHEME}):(?://{_AUTHORITY})?{_PATH}.*\z",
    "AUTHORITY": rf"\A{_SCHEME}://({_AUTHORITY})(?=[/?#]|\z).*\z",
    "USERINFO": rf"\A{_SCHEME}://([^/?#@]*)@(?:{_HOST})(?::[0-9]*)?(?=[/?#]|\z).*\z",
    "HOST": rf"\A{_SCHEME}://(?:{_USER})?({_HOST})(?::[0-9]*)?(?=[/?#]|\z).*\z",
    "PATH": rf"\A{_SCHEME}:(?://{_AUTHORITY}(?=[/?#]|\z))?({_PATH}).*\z",
    "QUERY": rf"\A{_SCHEME}:(?://{_AUTHORITY}(?=[/?#]|\z))?{_PATH}\?({_QUERY}).*\z",
    "FILE": rf"\A{_SCHEME}:(?://{_AUTHORITY}(?=[/?#]|\z))?({_PATH}(?:\?{_QUERY})?).*\z",
    "REF": rf"\A{_SCHEME}:[^#]*#(.*)\z",
}
_AROUND = quoted(r"\A[\x00-\x20]+|[\x00-\x20]+\z")
"""What Java takes for blanks around a URL."""
_OCTET = "0*(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"


def _part(url: str, part: str) -> str:
    """The part, NULL if the URL has none or is none."""
    pattern = quoted(f"(?s){_PARTS[part]}")
    return f"CASE WHEN {url} RLIKE {pattern} THEN regexp_extract({url}, {pattern}, 1) END"


def _parse_url(call: SparkCall) -> str:
    url, part, *key = call.args
    url = f"regexp_replace({url}, {_AROUND}, '')"
    part_name = call.literals[1]
    if isinstance(part_name, str):
        result = _named_part(url, part_name, *key)
    else:
        cases = " ".join(f"WHEN '{name}' THEN {_named_part(url, name, *key)}" for name in _PARTS)
        result = f"CASE {part} {cases} END"
    return result


def _named_part(url: str, part: str, key: str = "") -> str:
    if part not in _PARTS or (key and part != "QUERY"):
        return "CAST(NULL AS STRING)"
    value = share(url, lambda u: _part(u, part))
    return share(value, lambda query: _parameter(query, key)) if key else value


def _parameter(query: str, key: str) -> str:
    pattern = f"concat('(?:&|^)', {key}, '=([^&]*)')"
    return f"CASE WHEN {query} RLIKE {pattern} THEN regexp_extract({query}, {pattern}, 1) END"


def _inet_aton(call: SparkCall) -> str:
    """One to four octets; the last stands for the lowest byte, those before it for the highest."""
    valid = quoted(rf"\A{_OCTET}(?:\.{_OCTET}){{0,3}}\z")
    address = call.args[0]
    octets = f"split({address}, '\\\\.')"
    return f"CASE WHEN {address} RLIKE {valid} THEN {share(octets, _number_of)} END"


def _number_of(octets: str) -> str:
    high = [f"CAST({octets}[{i}] AS BIGINT) * {256 ** (3 - i)}L" for i in range(3)]
    sums = {n: " + ".join([*high[: n - 1], f"CAST({octets}[{n - 1}] AS BIGINT)"]) for n in range(1, 5)}
    cases = " ".join(f"WHEN {n} THEN {total}" for n, total in sums.items())
    return f"CASE size({octets}) {cases} END"


def _inet_ntoa(call: SparkCall) -> str:
    return share(call.args[0], _dotted)


def _dotted(number: str) -> str:
    octets = ", ".join(f"CAST(shiftright({number}, {shift}) & 255 AS STRING)" for shift in (24, 16, 8, 0))
    return f"CASE WHEN {number} BETWEEN 0 AND 4294967295 THEN concat_ws('.', {octets}) END"


FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction(
        name="PARSE_URL",
        resolve=signature(
            "PARSE_URL", CHARACTER, CHARACTER, CHARACTER, result=nullable(fixed(t.STRING)), optional=1
        ),
        spark=_parse_url,
    ),
    ScalarFunction(
        name="INET_ATON",
        resolve=signature("INET_ATON", CHARACTER, result=nullable(fixed(t.BIGINT))),
        spark=_inet_aton,
    ),
    ScalarFunction(
        name="INET_NTOA",
        resolve=signature("INET_NTOA", AS_BIGINT, result=nullable(fixed(t.STRING))),
        spark=_inet_ntoa,
    ),
)
