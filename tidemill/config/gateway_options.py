"""The gateway: its sessions, its workers, its results, its endpoints. Read from the gateway's own options,
never from a session's."""

from __future__ import annotations

from tidemill.config.option import Duration, MemorySize, Option

PREFIX = "tidemill.gateway."
"""Of options that no session has to know."""
IDLE_TIMEOUT = Option(
    key="sql-gateway.session.idle-timeout",
    kind=Duration,
    default=Duration(600_000),
    doc="A session that is unused for this time is closed; 0 never closes a session.",
)
CHECK_INTERVAL = Option(
    key="sql-gateway.session.check-interval",
    kind=Duration,
    default=Duration(60_000),
    doc="The interval between two checks for idle sessions; 0 turns the checks off.",
)
MAX_SESSIONS = Option(
    key="sql-gateway.session.max-num",
    kind=int,
    default=1_000_000,
    least=1,
    doc="How many sessions may be open.",
)
MAX_WORKERS = Option(
    key="sql-gateway.worker.threads.max",
    kind=int,
    default=500,
    least=1,
    doc="How many statements may run at a time; others wait.",
)
MIN_WORKERS = Option(
    key="sql-gateway.worker.threads.min",
    kind=int,
    default=5,
    least=0,
    doc="Read, but of no effect: idle threads stay.",
)
KEEPALIVE = Option(
    key="sql-gateway.worker.keepalive-time",
    kind=Duration,
    default=Duration(300_000),
    doc="Read, but of no effect: idle threads stay.",
)
ENDPOINTS = Option(
    key="sql-gateway.endpoint.type",
    kind=str,
    default="rest",
    doc="The endpoints that the gateway opens, by name, separated by commas or semicolons: `rest`, "
    "`hiveserver2`, or an endpoint of another package.",
)
REST_ADDRESS = Option(
    key="sql-gateway.endpoint.rest.bind-address",
    kind=str,
    default="127.0.0.1",
    doc="The address that the REST endpoint listens on. Flink's default is every address of the machine.",
)
REST_PORT = Option(
    key="sql-gateway.endpoint.rest.port",
    kind=int,
    default=8083,
    least=0,
    doc="The port of the REST endpoint; 0 takes a free port.",
)
MAX_REQUEST = Option(
    key="rest.server.max-content-length",
    kind=MemorySize,
    default=MemorySize(100 << 20),
    doc="The longest request that an endpoint reads.",
)
HEADER_TIMEOUT = Option(
    key="tidemill.gateway.rest.header-timeout",
    kind=Duration,
    default=Duration(20_000),
    own=True,
    doc="How long the headers of a request may take to arrive. After this time the gateway closes the "
    "connection.",
)
RESULT_MEMORY = Option(
    key="tidemill.gateway.result.memory",
    kind=MemorySize,
    default=MemorySize(4 << 20),
    own=True,
    doc="How much of one result is kept in memory; its other pages are on disk.",
)
RESULT_AHEAD = Option(
    key="tidemill.gateway.result.ahead",
    kind=MemorySize,
    default=MemorySize(256 << 20),
    own=True,
    doc="How far a running query may be ahead of its reader before it waits.",
)
DIRECTORY = Option(
    key="tidemill.gateway.directory",
    kind=str,
    default="",
    own=True,
    doc="The directory of the gateway's store, the checkpoints of its jobs and its results. Unset: "
    "`~/.local/state/tidemill/gateway` (`$XDG_STATE_HOME`).",
)
STORE = Option(
    key="tidemill.gateway.store",
    kind=str,
    default="",
    own=True,
    doc="The database that keeps sessions, operations and jobs over restarts, as a URL: "
    "`postgresql://user:password@host/database`; unset: an SQLite file in the gateway's directory.",
)
AUTHENTICATION = Option(
    key="tidemill.gateway.authentication",
    kind=str,
    default="",
    choices=("", "NONE", "PASSWORD"),
    own=True,
    doc="PASSWORD: each request names its user, by a password or a bearer token, and users see only "
    "their own sessions and jobs. NONE: everybody may do everything. Unset is NONE, and only "
    "allowed on an address of this machine.",
)
USERS_FILE = Option(
    key="tidemill.gateway.users-file",
    kind=str,
    default="",
    own=True,
    doc="The users: lines `name:hash`, as `tidemill user NAME` and `tidemill user --token NAME` print them.",
)
AUTHENTICATOR = Option(
    key="tidemill.gateway.authenticator",
    kind=str,
    default="",
    own=True,
    doc="Instead of the file of users: `module:function`. The function gets a name and a password, "
    "and returns whether they are right.",
)
TLS_CERTIFICATE = Option(
    key="tidemill.gateway.tls.certificate-file",
    kind=str,
    default="",
    own=True,
    doc="The certificate (PEM, with its chain) with which the endpoints use TLS.",
)
TLS_KEY = Option(
    key="tidemill.gateway.tls.private-file",
    kind=str,
    default="",
    own=True,
    doc="The certificate's key (PEM). Unset: the key is in the certificate's file.",
)
ALLOWED_PATHS = Option(
    key="tidemill.gateway.allowed-paths",
    kind=str,
    default="",
    own=True,
    doc="The files that SQL may read and write: absolute paths and URIs separated by semicolons, each "
    "with everything below it; `*` is any. `{user}` stands for the name of the current user, "
    "`ann=/data/x` is for the user ann only. Unset is `*`, but with PASSWORD it must be set. The "
    "gateway's own files are always closed.",
)
ALLOWED_CONNECTORS = Option(
    key="tidemill.gateway.allowed-connectors",
    kind=str,
    default="",
    own=True,
    doc="The connectors that SQL may use, in the same form: `filesystem;datagen;ann=jdbc`. `*` is "
    "any. If paths are limited, `*` is any but `spark`, which reaches every file. Unset is `*`, "
    "but with PASSWORD it must be set.",
)
USER_CODE = Option(
    key="tidemill.gateway.user-code",
    kind=str,
    default="",
    choices=("", "true", "false"),
    own=True,
    doc="Whether SQL may call functions in Python, which have all rights of the gateway. Unset is "
    "true, but false with PASSWORD.",
)
ALLOWED_MODULES = Option(
    key="tidemill.gateway.allowed-modules",
    kind=str,
    default="*",
    own=True,
    doc="The Python modules that such functions may come from, in the same form: "
    "`company.functions;ann=scores`. Only `*` allows files in `python.files`.",
)
KEY_FILE = Option(
    key="tidemill.gateway.key-file",
    kind=str,
    default="",
    own=True,
    doc="The key with which the store encrypts sessions, jobs and catalogs. A missing file is "
    "created. Unset: `key` in the gateway's directory.",
)
AUDIT_FILE = Option(
    key="tidemill.gateway.audit-file",
    kind=str,
    default="",
    own=True,
    doc="A file that gets a line of JSON for each session, statement and refused login. Unset: no file.",
)
METRICS_USERS = Option(
    key="tidemill.gateway.metrics.users",
    kind=str,
    default="",
    own=True,
    doc="Users that see the metrics of all users' jobs, separated by commas; other users see the "
    "metrics of their own jobs.",
)
OTLP_ENDPOINT = Option(
    key="tidemill.gateway.otlp-endpoint",
    kind=str,
    default="",
    own=True,
    doc="The address of an OpenTelemetry collector that takes OTLP over HTTP, as "
    "`http://127.0.0.1:4318`. The gateway sends it a span for each statement and epoch, and the "
    "metrics. Needs `pip install 'tidemill[otel]'`.",
)
USER_SESSIONS = Option(
    key="tidemill.gateway.user.max-sessions",
    kind=int,
    default=0,
    least=0,
    own=True,
    doc="How many sessions a user may have open; 0: no limit for a single user.",
)
USER_OPERATIONS = Option(
    key="tidemill.gateway.user.max-operations",
    kind=int,
    default=0,
    least=0,
    own=True,
    doc="How many statements of a user may wait or run; 0: no limit.",
)
USER_RESULTS = Option(
    key="tidemill.gateway.user.max-result-size",
    kind=MemorySize,
    default=MemorySize(0),
    own=True,
    doc="If a user's open results are larger, the user gets no new statement until a result is "
    "closed; 0: no limit.",
)
OPTIONS = (
    IDLE_TIMEOUT,
    CHECK_INTERVAL,
    MAX_SESSIONS,
    MAX_WORKERS,
    MIN_WORKERS,
    KEEPALIVE,
    ENDPOINTS,
    REST_ADDRESS,
    REST_PORT,
    MAX_REQUEST,
    HEADER_TIMEOUT,
    RESULT_MEMORY,
    RESULT_AHEAD,
    DIRECTORY,
    STORE,
    AUTHENTICATION,
    USERS_FILE,
    AUTHENTICATOR,
    TLS_CERTIFICATE,
    TLS_KEY,
    ALLOWED_PATHS,
    ALLOWED_CONNECTORS,
    USER_CODE,
    ALLOWED_MODULES,
    KEY_FILE,
    AUDIT_FILE,
    METRICS_USERS,
    OTLP_ENDPOINT,
    USER_SESSIONS,
    USER_OPERATIONS,
    USER_RESULTS,
)
