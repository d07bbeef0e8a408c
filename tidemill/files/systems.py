"""From a path or URI to a ``pyarrow`` file system: local disks, S3, Google Cloud Storage, HDFS.

Credentials come from the settings given (``SETTINGS``) or from the environment as each store's
own tools read it (``AWS_*``, ``GOOGLE_APPLICATION_CREDENTIALS``, ``HADOOP_HOME``); never from the URI.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from tidemill.errors import ConnectorError, NotSupportedError, ValidationError

GCS_ENDPOINT = "gs.endpoint"
SETTINGS = ("s3.access-key", "s3.secret-key", "s3.session-token", "s3.endpoint", "s3.region", GCS_ENDPOINT)
"""Settings for the access to object stores."""
CONNECT_SECONDS, REQUEST_SECONDS, ATTEMPTS = 10, 60, 6
S3_SCHEMES = ("s3", "s3a", "s3n")
GCS_SCHEME = "gs"
HDFS_SCHEMES = ("hdfs", "viewfs")
_HDFS_HINT = (
    "HDFS needs Hadoop's native client, which runs in Java: set HADOOP_HOME (or ARROW_LIBHDFS_DIR), "
    "CLASSPATH and JAVA_HOME."
)


def is_local(location: str) -> bool:
    return "://" not in location or location.startswith("file:")


def resolve(location: str, settings: Mapping[str, str]) -> tuple[fs.FileSystem, str]:
    """The file system and the path in it. NotSupportedError for schemes that there are no file systems for,
    ConnectorError where one cannot be opened."""
    if is_local(location):
        return fs.LocalFileSystem(use_mmap=True), local_path(location)
    scheme = location.partition("://")[0].lower()
    if scheme not in _SYSTEMS:
        known = ", ".join(["file", *_SYSTEMS])
        raise NotSupportedError(f"There is no file system for '{scheme}://'; supported are {known}.")
    parts = urlsplit(location)
    if parts.password or parts.query:
        raise ValidationError(
            f"'{scheme}://{parts.hostname}{parts.path}' is given with credentials or options in the URI.",
            hint="Give them as settings (s3.access-key, s3.secret-key, ...) or in the environment.",
        )
    try:
        return _SYSTEMS[scheme](location, settings)
    except (pa.ArrowInvalid, OSError, ImportError) as e:
        reason = str(e).partition("\n")[0]
        hint = _HDFS_HINT if scheme in HDFS_SCHEMES else ""
        raise ConnectorError(f"Cannot open the file system of '{location}': {reason}", hint=hint) from None


def local_path(location: str) -> str:
    """The absolute path that a local location names."""
    if location.startswith("file:"):
        return "/" + location.removeprefix("file:").lstrip("/")
    return os.path.abspath(location)


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Settings:
    """How an S3 store is reached; what is None is for each library to find in the environment."""

    region: str | None
    endpoint: str | None
    access_key: str | None = field(repr=False)
    secret_key: str | None = field(repr=False)
    session_token: str | None = field(repr=False)


def s3_settings(location: str, settings: Mapping[str, str]) -> S3Settings:
    """By Flink's keys, then by the environment. May ask the store for a bucket's region."""
    endpoint = settings.get("s3.endpoint") or _first("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    region = settings.get("s3.region") or _first("AWS_REGION", "AWS_DEFAULT_REGION")
    if endpoint and "://" not in endpoint:
        endpoint = f"https://{endpoint}"
    if not region:
        bucket = location.partition("://")[2].partition("/")[0]
        region = "us-east-1" if endpoint else fs.resolve_s3_region(bucket)
    return S3Settings(
        region=region,
        endpoint=endpoint,
        access_key=settings.get("s3.access-key"),
        secret_key=settings.get("s3.secret-key"),
        session_token=settings.get("s3.session-token"),
    )


def _s3(location: str, settings: Mapping[str, str]) -> tuple[fs.FileSystem, str]:
    given = s3_settings(location, settings)
    keys: dict[str, Any] = {
        "access_key": given.access_key,
        "secret_key": given.secret_key,
        "session_token": given.session_token,
        "region": given.region,
    }
    if given.endpoint:
        scheme, _, host = given.endpoint.partition("://")
        keys |= {"endpoint_override": host.rstrip("/"), "scheme": scheme}
    system = fs.S3FileSystem(
        connect_timeout=CONNECT_SECONDS,
        request_timeout=REQUEST_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        **{key: value for key, value in keys.items() if value},
    )
    return system, location.partition("://")[2]


def _gcs(location: str, settings: Mapping[str, str]) -> tuple[fs.FileSystem, str]:
    """With an endpoint of its own: an emulator, which asks for no credentials."""
    keys: dict[str, Any] = {}
    if settings.get(GCS_ENDPOINT):
        scheme, _, host = settings[GCS_ENDPOINT].rpartition("://")
        keys = {"anonymous": True, "endpoint_override": host.rstrip("/"), "scheme": scheme or "https"}
    # A store that does not answer is asked again for about as long as S3 is.
    system = fs.GcsFileSystem(retry_time_limit=timedelta(seconds=REQUEST_SECONDS), **keys)
    return system, location.partition("://")[2]


def _first(*names: str) -> str | None:
    return next((os.environ[n] for n in names if os.environ.get(n)), None)


def _by_uri(location: str, settings: Mapping[str, str]) -> tuple[fs.FileSystem, str]:
    system, path = fs.FileSystem.from_uri(location)
    return system, path


_SYSTEMS: dict[str, Callable[[str, Mapping[str, str]], tuple[fs.FileSystem, str]]] = {
    **dict.fromkeys(S3_SCHEMES, _s3),
    GCS_SCHEME: _gcs,
    **dict.fromkeys(HDFS_SCHEMES, _by_uri),
}
