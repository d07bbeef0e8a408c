"""The tables of the gateway's store: sessions, operations, jobs. JSON is text, times are milliseconds."""

from __future__ import annotations

import sqlalchemy as sa

VERSION = 1
METADATA = sa.MetaData()
VERSIONS = sa.Table("tidemill_gateway", METADATA, sa.Column("version", sa.Integer, nullable=False))
SESSIONS = sa.Table(
    "tidemill_sessions",
    METADATA,
    sa.Column("handle", sa.String(36), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("opened", sa.BigInteger, nullable=False),
    sa.Column("snapshot", sa.Text, nullable=False),
)
OPERATIONS = sa.Table(
    "tidemill_operations",
    METADATA,
    sa.Column("handle", sa.String(36), primary_key=True),
    sa.Column("session", sa.String(36), nullable=False, index=True),
    sa.Column("submitted", sa.BigInteger, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("result", sa.Text),
)
HISTORIES = sa.Table(
    "tidemill_job_histories",
    METADATA,
    sa.Column("place", sa.Text, primary_key=True),
    sa.Column("document", sa.Text, nullable=False),
)
JOBS = sa.Table(
    "tidemill_jobs",
    METADATA,
    sa.Column("place", sa.Text, primary_key=True),
    sa.Column("job_id", sa.String(32), nullable=False, index=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("started", sa.BigInteger, nullable=False),
    sa.Column("ended", sa.BigInteger),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("statements", sa.Text, nullable=False),
    sa.Column("snapshot", sa.Text, nullable=False),
)
