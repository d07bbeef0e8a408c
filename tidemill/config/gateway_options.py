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
    doc="A session that nobody has used for so long is closed; 0 never closes one.",
)
CHECK_INTERVAL = Option(
    key="sql-gateway.session.check-interval",
    kind=Duration,
    default=Duration(60_000),
    doc="How often idle sessions are looked for; 0 does not look.",
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
    doc="How many threads stay when there is nothing to do.",
)
KEEPALIVE = Option(
    key="sql-gateway.worker.keepalive-time",
    kind=Duration,
    default=Duration(300_000),
    doc="How long a thread beyond these stays idle before it ends.",
)
ENDPOINTS = Option(
    key="sql-gateway.endpoint.type",
    kind=str,
    default="rest",
    doc="Which endpoints the gateway opens, by name, with commas or semicolons between them: `rest`, "
    "`hiveserver2`, or one that a package brings.",
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
    doc="Its port; 0 takes a free one.",
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
    doc="How long the headers of a request may take to come; then its connection is closed.",
)
RESULT_MEMORY = Option(
    key="tidemill.gateway.result.memory",
    kind=MemorySize,
    default=MemorySize(4 << 20),
    own=True,
    doc="How much of one result is kept in memory; the rest of its pages lie on disk.",
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
    doc="Where the gateway keeps its store, the checkpoints of its jobs and its results; unset: "
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
    doc="PASSWORD: each request says who asks, by a password or a bearer token, and nobody sees what is "
    "another's. NONE: everybody may do everything. Unset is NONE, on an address of this machine alone.",
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
    doc="Instead of the file: `module:function`, which is given a name and a password, and says whether they "
    "are right.",
)
TLS_CERTIFICATE = Option(
    key="tidemill.gateway.tls.certificate-file",
    kind=str,
    default="",
    own=True,
    doc="The endpoints speak TLS, with this certificate (PEM, with its chain).",
)
TLS_KEY = Option(
    key="tidemill.gateway.tls.private-file",
    kind=str,
    default="",
    own=True,
    doc="The certificate's key (PEM); unset: it lies in the certificate's file.",
)
ALLOWED_PATHS = Option(
    key="tidemill.gateway.allowed-paths",
    kind=str,
    default="",
    own=True,
    doc="Which files SQL may read and write: absolute paths and URIs with semicolons between them, each with "
    "all that is below it; `*` is any. `{user}` stands for who asks, `ann=/data/x` is for the user ann only. "
    "Unset is `*`, but with PASSWORD it must be set. What the gateway keeps for itself is always closed.",
)
ALLOWED_CONNECTORS = Option(
    key="tidemill.gateway.allowed-connectors",
    kind=str,
    default="",
    own=True,
    doc="Which connectors SQL may use, in the same form: `filesystem;datagen;ann=jdbc`. `*` is any; where "
    "paths are limited it is any but `spark`, which reaches every file. Unset is `*`, but with PASSWORD it "
    "must be set.",
)
USER_CODE = Option(
    key="tidemill.gateway.user-code",
    kind=str,
    default="",
    choices=("", "true", "false"),
    own=True,
    doc="Whether SQL may call functions in Python, which can do all that the gateway can. Unset is true, but "
    "false with PASSWORD.",
)
ALLOWED_MODULES = Option(
    key="tidemill.gateway.allowed-modules",
    kind=str,
    default="*",
    own=True,
    doc="Which modules of Python such functions may be of, in the same form: `company.functions;ann=scores`. "
    "Only `*` allows files in `python.files`.",
)
KEY_FILE = Option(
    key="tidemill.gateway.key-file",
    kind=str,
    default="",
    own=True,
    doc="The key that sessions, jobs and catalogs are encrypted with in the store; made where there is none. "
    "Unset: `key` in the gateway's directory.",
)
AUDIT_FILE = Option(
    key="tidemill.gateway.audit-file",
    kind=str,
    default="",
    own=True,
    doc="Where a line of JSON is added for each session, statement and refused login; unset: nowhere.",
)
METRICS_USERS = Option(
    key="tidemill.gateway.metrics.users",
    kind=str,
    default="",
    own=True,
    doc="Users who see the metrics of all users' jobs, with commas between them; others see their own.",
)
OTLP_ENDPOINT = Option(
    key="tidemill.gateway.otlp-endpoint",
    kind=str,
    default="",
    own=True,
    doc="Where a collector of OpenTelemetry takes OTLP over HTTP, as `http://127.0.0.1:4318`: it is sent a "
    "span for each statement and epoch, and the metrics. Needs `pip install 'tidemill[otel]'`.",
)
USER_SESSIONS = Option(
    key="tidemill.gateway.user.max-sessions",
    kind=int,
    default=0,
    least=0,
    own=True,
    doc="How many sessions a user may have open; 0 for as many as there may be.",
)
USER_OPERATIONS = Option(
    key="tidemill.gateway.user.max-operations",
    kind=int,
    default=0,
    least=0,
    own=True,
    doc="How many statements of a user may wait or run; 0 for any number.",
)
USER_RESULTS = Option(
    key="tidemill.gateway.user.max-result-size",
    kind=MemorySize,
    default=MemorySize(0),
    own=True,
    doc="A user whose open results are larger gets no new statement until one is closed; 0 for any size.",
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
