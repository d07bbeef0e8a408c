"""In S3: a PUT under the condition that there is no such object (``If-None-Match``), sent by botocore
(``pip install 'tidemill[s3]'``)."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

from tidemill.errors import SetupError
from tidemill.files.exclusive.api import OutcomeUnknownError
from tidemill.files.storage import Storage
from tidemill.files.systems import ATTEMPTS, CONNECT_SECONDS, REQUEST_SECONDS, s3_settings

_THERE = (409, 412)


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Exclusive:
    """A request that was sent again, its answer being lost, finds its own object, and knows its bytes."""

    storage: Storage
    client: Any

    @classmethod
    def of(cls, storage: Storage) -> Self:
        return cls(storage=storage, client=_client(storage))

    def put(self, relative: str, data: bytes) -> None:
        bucket, _, key = self.storage.absolute(relative).partition("/")
        errors = import_module("botocore.exceptions")
        try:
            self.client.put_object(Bucket=bucket, Key=key, Body=data, IfNoneMatch="*")
        except errors.ClientError as e:
            status = e.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            if status not in _THERE:
                kind = OutcomeUnknownError if status >= 500 else OSError
                raise kind(errno.EIO, str(e)) from e
        except (errors.NoCredentialsError, errors.PartialCredentialsError) as e:
            raise PermissionError(errno.EACCES, str(e)) from e
        except errors.BotoCoreError as e:
            raise OutcomeUnknownError(errno.EIO, str(e)) from e
        else:
            return
        if self.storage.read_bytes(relative) != data:
            raise FileExistsError(errno.EEXIST, "File exists", self.storage.full_path(relative))


def _client(storage: Storage) -> Any:
    try:
        session, config = import_module("botocore.session"), import_module("botocore.config")
    except ImportError as e:
        raise SetupError(
            f"Checkpoints on '{storage.location}' need a package that is not installed: {e.name}.",
            hint="pip install 'tidemill[s3]'",
        ) from e
    given = s3_settings(storage.location, dict(storage.settings))
    return session.get_session().create_client(
        "s3",
        region_name=given.region,
        endpoint_url=given.endpoint,
        aws_access_key_id=given.access_key,
        aws_secret_access_key=given.secret_key,
        aws_session_token=given.session_token,
        config=config.Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=REQUEST_SECONDS,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            s3={"addressing_style": "path" if given.endpoint else "auto"},
        ),
    )
