"""Who comes in (users, tokens, TLS, quotas), and who does not: strangers, and pages of other sites."""

from __future__ import annotations

import base64
import http.client
import json
import logging
import shutil
import socket
import ssl
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import certificate
from tests.gateway.fakes import Gate, Stopwatch, gateway
from tidemill.config.option import Configuration
from tidemill.errors import SetupError
from tidemill.gateway.api import LimitError, OperationStatus, UnknownSessionError
from tidemill.gateway.endpoints.hiveserver2.endpoint import HiveServer2Endpoint
from tidemill.gateway.endpoints.rest.authentication import Authentication
from tidemill.gateway.endpoints.rest.endpoint import RestEndpoint
from tidemill.gateway.endpoints.rest.errors import HttpError
from tidemill.gateway.log import OneLine
from tidemill.gateway.security.access import Access, AccessError
from tidemill.gateway.security.audit import Audit
from tidemill.gateway.security.guesses import FREE, FREE_OF_ADDRESS, MOST, Guesses
from tidemill.gateway.security.users import password_hash, token_hash, users_by, users_in
from tidemill.gateway.service.service import Gateway
from tidemill.runtime.progress import EpochProgress

TOKEN = "0123456789abcdef"
AUTHENTICATION = "tidemill.gateway.authentication"
Ask = Callable[..., tuple[int, Any]]


def check_of_a_program(name: str, password: str) -> bool:
    return (name, password) == ("eve", "of a program")


def anybody(name: str, password: str) -> bool:
    return True


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("users") / "users"
    lines = [
        "# who",
        f"ann:{password_hash('pässword:1')}",
        f"bob:{password_hash('other')}",
        f"bob:{token_hash(TOKEN)}",
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    return str(file)


def served(
    folder: Path, options: Mapping[str, str] | None = None, context: ssl.SSLContext | None = None
) -> AbstractContextManager[Ask]:
    return serving(gateway(folder)[0], options, context)


@contextmanager
def listening(made: Gateway, options: Mapping[str, str] | None = None) -> Iterator[int]:
    """The port of an endpoint."""
    endpoint = RestEndpoint(made, Configuration({"sql-gateway.endpoint.rest.port": "0", **(options or {})}))
    endpoint.start()
    try:
        yield int(endpoint.address.rpartition(":")[2])
    finally:
        endpoint.stop()


@contextmanager
def serving(
    made: Gateway, options: Mapping[str, str] | None = None, context: ssl.SSLContext | None = None
) -> Iterator[Ask]:
    def ask(
        method: str, path: str, authorization: str = "", body: bytes | None = None, **headers: str
    ) -> tuple[int, Any]:
        if context is None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        else:
            connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
        given = {"Authorization": authorization} if authorization else {}
        connection.request(method, path, body, {**given, **headers})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, json.loads(text) if text.startswith("{") else text

    with listening(made, options) as port:
        yield ask


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def test_users_by_password_and_token(tmp_path: Path, users: str) -> None:
    options = {AUTHENTICATION: "PASSWORD", "tidemill.gateway.users-file": users}
    with served(tmp_path, options) as ask:
        ann, bob = basic("ann", "pässword:1"), f"Bearer {TOKEN}"
        session = ask("POST", "/v1/sessions", ann)[1]["sessionHandle"]
        assert ask("GET", f"/v1/sessions/{session}", ann)[0] == 200
        assert ask("GET", f"/v1/sessions/{session}", basic("ann", "pässword:1"))[0] == 200
        status, answer = ask("GET", f"/v1/sessions/{session}", bob)
        assert (status, "does not exist" in answer["errors"][0]) == (500, True)
        strangers = [
            "",
            basic("ann", "other"),
            basic("nobody", "x"),
            "Bearer x",
            "Basic !",
            "Basic \xff\xfe",
            "Basic " + base64.b64encode(b"\xff:\xfe").decode(),
            "Digest x",
            "Basic",
        ]
        for stranger in strangers:
            for path in ("/v1/info", "/metrics", f"/v1/sessions/{session}"):
                status, answer = ask("GET", path, stranger)
                assert status == 401
                assert len(answer["errors"]) == 1
        assert "tidemill_sessions 1" in ask("GET", "/metrics", bob)[1]


def test_headers_that_are_no_addresses(tmp_path: Path) -> None:
    with served(tmp_path) as ask:
        assert ask("GET", "/v1/info", Origin="http://[")[0] == 403
        assert ask("GET", "/v1/info", Host="[")[0] == 403


def test_wrong_logins_are_slowed_down(users: str) -> None:
    """The right password waits, too, but for one that was right before, or that comes from elsewhere."""
    authentication = Authentication(Access(users_in(users), guesses=Guesses(clock=Stopwatch())))

    def ask(authorization: str, address: str = "1.2.3.4") -> int:
        """The status, one more where it says how long to wait."""
        try:
            authentication.user({"authorization": authorization}, address)
        except HttpError as e:
            return e.status + ("Retry-After" in e.headers)
        return 200

    guesses = [basic(name, "guess") for name in 7 * ["ann"] + 2 * ["bob"]]
    assert [ask(said) for said in guesses] == [401] * FREE + [430] * 2 + [401] * 2
    right = basic("ann", "pässword:1")
    assert [ask(right), ask(right, "1.2.3.5"), ask(right)] == [430, 200, 200]
    assert ask(f"Bearer {TOKEN}") == 200
    assert [ask("Bearer old") for _ in range(FREE + 1)] == [401] * (FREE + 1)


def test_guesses_wait_ever_longer_and_take_no_more_than_so_much_memory() -> None:
    clock = Stopwatch()
    guesses = Guesses(clock=clock)
    for wanted in (1, 2, 4, 8, 16, 32, 60, 60):
        while guesses.begin("ann", "1.2.3.4") == 0:
            pass
        assert guesses.begin("ann", "1.2.3.4") == wanted
        assert guesses.begin("ann", "1.2.3.5") == 0
        guesses.right("ann", "1.2.3.5")
        clock.now += wanted
    assert guesses.begin("bob", "1.2.3.4") == 0
    guesses.right("ann", "1.2.3.4")
    assert [guesses.begin("ann", "1.2.3.4") for _ in range(FREE)] == [0] * FREE
    for number in range(2 * FREE_OF_ADDRESS):
        guesses.begin(str(number), f"2001:db8::{number:x}")
    assert guesses.begin("new", "2001:db8::ffff") > 0
    assert guesses.begin("new", "2001:db8:1::") == 0
    for number in range(2 * MOST):
        guesses.begin("eve", str(number))
    assert len(guesses._wrong) == MOST


def test_many_guesses_at_once_are_no_more_than_in_a_row() -> None:
    guesses = Guesses(clock=Stopwatch())
    assert sum(guesses.begin("ann", "a") == 0 for _ in range(100)) == FREE
    guesses.right("ann", "a")
    assert guesses.begin("ann", "a") == 0


def test_a_line_of_the_log_is_one_whatever_users_write() -> None:
    forged = "no option 'a\n2026-01-01T00:00:00Z WARNING root logs in\x1b[2K\u2028'"
    try:
        raise ValueError("b\nforged")
    except ValueError:
        record = logging.LogRecord("tidemill", logging.WARNING, "", 0, "%s", (forged,), sys.exc_info())
    first, *rest = OneLine().format(record).splitlines()
    assert first.endswith(r" WARNING no option 'a\n2026-01-01T00:00:00Z WARNING root logs in\x1b[2K\u2028'")
    assert rest[-2:] == ["    ValueError: b", "    forged"]
    assert all(line.startswith("    ") for line in rest)


def test_metrics_of_jobs_are_their_user_s(tmp_path: Path, users: str) -> None:
    made, _ = gateway(tmp_path, tidemill__gateway__metrics__users="prometheus, bob")
    progress = EpochProgress(
        epoch=1, rows_in=5, rows_out=3, seconds=0.5, state_rows=2, state_bytes=9, job_id="of-bob"
    )
    made.epoch(progress, user="bob")
    made.epoch(replace(progress, job_id="of-ann"), user="ann")
    with serving(made, {AUTHENTICATION: "PASSWORD", "tidemill.gateway.users-file": users}) as ask:
        for path in ("/metrics", "/metrics.json"):
            anns, bobs = (
                str(ask("GET", path, user)[1]) for user in (basic("ann", "pässword:1"), f"Bearer {TOKEN}")
            )
            assert ("of-ann" in anns, "of-bob" in anns) == (True, False)
            assert ("of-ann" in bobs, "of-bob" in bobs) == (True, True)


def test_pages_of_other_sites_are_refused(tmp_path: Path) -> None:
    with served(tmp_path) as ask:
        assert ask("GET", "/v1/info", Origin="http://evil.example")[0] == 403
        assert ask("POST", "/v1/sessions", Origin="null")[0] == 403
        assert ask("GET", "/v1/info", Host="evil.example")[0] == 403
        assert ask("GET", "/v1/info", Host="127.0.0.1:1", Origin="http://127.0.0.1:1")[0] == 200
        assert ask("GET", "/v1/info", Host="localhost")[0] == 200


def test_an_address_that_others_reach_must_be_chosen(tmp_path: Path, users: str) -> None:
    made, _ = gateway(tmp_path)
    address = {"sql-gateway.endpoint.rest.bind-address": "0.0.0.0", "sql-gateway.endpoint.rest.port": "0"}
    with pytest.raises(SetupError, match=r"would listen on 0\.0\.0\.0, which other machines reach"):
        RestEndpoint(made, Configuration(address)).start()
    with pytest.raises(SetupError, match="which say who the users are"):
        RestEndpoint(made, Configuration({**address, AUTHENTICATION: "PASSWORD"})).start()
    for chosen in (
        {AUTHENTICATION: "NONE"},
        {AUTHENTICATION: "PASSWORD", "tidemill.gateway.users-file": users},
    ):
        endpoint = RestEndpoint(made, Configuration({**address, **chosen}))
        endpoint.start()
        endpoint.stop()


def test_users_of_a_program_and_files_that_are_none(tmp_path: Path) -> None:
    function = f"{__name__}:check_of_a_program"
    access = Access.of(
        Configuration({AUTHENTICATION: "PASSWORD", "tidemill.gateway.authenticator": function}),
        Audit(),
    )
    assert access.by_password("eve", "of a program") == "eve"
    with pytest.raises(AccessError):
        access.by_password("eve", "")
    with pytest.raises(SetupError, match="does not name a function"):
        Access.of(
            Configuration({AUTHENTICATION: "PASSWORD", "tidemill.gateway.authenticator": "nosuch:f"}), Audit()
        )


GOOD = password_hash("x")


@pytest.mark.parametrize(
    "line",
    [
        "ann:secret",
        "ann",
        f":{GOOD}",
        f"ann {GOOD}",
        "ann:scrypt$secret",
        f"ann:{GOOD[:-8]}",
        f"ann:{GOOD}secret",
        f"ann:{GOOD}$",
        "ann:scrypt$",
        "ann:sha256$secret",
        f"ann:sha256${GOOD.partition('$')[2]}",
    ],
)
def test_a_line_of_users_that_is_none(tmp_path: Path, line: str) -> None:
    file = tmp_path / "users"
    file.write_text(f"bob:{GOOD}\n{line}\n", encoding="utf-8")
    with pytest.raises(SetupError, match=rf"Line 2 of '{file}' is not of the form") as caught:
        users_in(str(file))
    assert "secret" not in str(caught.value)


def test_files_of_users(tmp_path: Path) -> None:
    """A user may have several passwords and tokens, a token one user; an editor may begin with a mark."""
    file = tmp_path / "users"
    file.write_text(f"ann:{GOOD}\nann:{password_hash('y')}\n", encoding="utf-8-sig")
    users = users_in(str(file))
    assert [users.with_password("ann", said) for said in "xyz"] == [True, True, False]
    for nobody in ("", "# nobody\n\n", "\ufeff"):
        file.write_text(nobody, encoding="utf-8")
        with pytest.raises(SetupError, match=f"users file '{file}' has no users"):
            users_in(str(file))
    file.write_text(f"ann:{token_hash('t')}\nann:{token_hash('t')}\nbob:{token_hash('t')}", encoding="utf-8")
    with pytest.raises(SetupError, match=f"Line 3 of '{file}' gives 'bob' the token of 'ann'"):
        users_in(str(file))
    file.write_bytes(b"ann:\xff")
    with pytest.raises(SetupError, match=f"'{file}' cannot be read"):
        users_in(str(file))


def test_tls(tmp_path: Path) -> None:
    file = certificate(tmp_path)
    context = ssl.create_default_context(cafile=file)
    with served(tmp_path, {"tidemill.gateway.tls.certificate-file": file}, context) as ask:
        assert ask("GET", "/v1/info")[0] == 200
        status, told = ask("POST", "/v1/sessions", body=b"x" * (104 << 20), Connection="close")
        assert (status, "longer than" in told["errors"][0]) == (413, True)


def test_what_is_no_request_does_not_hold_a_connection_over_tls(tmp_path: Path) -> None:
    """The client sees the answer, then the end; it need not close."""
    file = certificate(tmp_path)
    context = ssl.create_default_context(cafile=file)
    long = {"tidemill.gateway.rest.header-timeout": "10 min"}
    with listening(gateway(tmp_path)[0], {"tidemill.gateway.tls.certificate-file": file, **long}) as port:
        plain = socket.create_connection(("127.0.0.1", port), timeout=60)
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
            connection.sendall(b"no request\r\n\r\n" + b"x" * 100_000)
            got = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert got.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("endpoint", [RestEndpoint, HiveServer2Endpoint])
def test_certificates_that_cannot_be_used(
    tmp_path: Path, endpoint: type[RestEndpoint | HiveServer2Endpoint]
) -> None:
    both, key = certificate(tmp_path), str(tmp_path / "key.pem")
    program = shutil.which("openssl") or ""
    other, closed, missing, alone = (str(tmp_path / name) for name in ("other", "closed", "missing", "alone"))
    kind = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", other]
    subprocess.run([program, "genpkey", *kind], check=True, capture_output=True)
    secret = ["-aes256", "-passout", "pass:word"]
    subprocess.run([program, "pkey", "-in", key, "-out", closed, *secret], check=True, capture_output=True)
    Path(alone).write_text(
        Path(both).read_text().partition("PRIVATE KEY-----\n")[2].partition("KEY-----\n")[2]
    )
    broken = tmp_path / "broken"
    broken.write_text("-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n")
    made, _ = gateway(tmp_path)
    for its_certificate, its_key, told in [
        (missing, "", f"certificate file '{missing}' cannot be read: No such file"),
        (str(tmp_path), "", f"'{tmp_path}' cannot be read: Is a directory"),
        (both, missing, f"key file '{missing}' cannot be read: No such file"),
        (str(broken), key, f"'{broken}' with the key '{key}' cannot be used"),
        (alone, "", f"'{alone}', which must hold its key, too, cannot be used"),
        (alone, other, f"'{alone}' with the key '{other}' cannot be used: .*MISMATCH"),
        (alone, closed, f"key in '{closed}' needs a password"),
        ("", key, "private-file' is set, and .* is not"),
    ]:
        files = {
            "tidemill.gateway.tls.certificate-file": its_certificate,
            "tidemill.gateway.tls.private-file": its_key,
        }
        ports = {"sql-gateway.endpoint.rest.port": "0", "sql-gateway.endpoint.hiveserver2.thrift.port": "0"}
        with pytest.raises(SetupError, match=told):
            endpoint(made, Configuration({**ports, **files})).start()


def test_nobody_s_name_is_none_of_those_who_watch_all(tmp_path: Path) -> None:
    made, _ = gateway(tmp_path)
    made.epoch(
        EpochProgress(
            epoch=1, rows_in=5, rows_out=3, seconds=0.5, state_rows=2, state_bytes=9, job_id="of-ann"
        ),
        user="ann",
    )
    options = {AUTHENTICATION: "PASSWORD", "tidemill.gateway.authenticator": f"{__name__}:anybody"}
    with serving(made, options) as ask:
        assert "of-ann" in ask("GET", "/metrics", basic("ann", ""))[1]
        assert "of-ann" not in ask("GET", "/metrics", basic("", ""))[1]


def test_a_user_has_so_much_and_no_more(tmp_path: Path) -> None:
    gate = Gate()
    made, _ = gateway(
        tmp_path,
        {"wait": gate},
        tidemill__gateway__user__max_sessions="2",
        tidemill__gateway__user__max_operations="1",
        tidemill__gateway__user__max_result_size="30 b",
    )
    session, _ = made.open_session({}, user="ann"), made.open_session({}, user="ann")
    with pytest.raises(LimitError, match="2 sessions open"):
        made.open_session({}, user="ann")
    other = made.open_session({}, user="bob")
    running = made.execute(session, "wait", user="ann")
    assert gate.running.wait(60)
    with pytest.raises(LimitError, match="1 of your statements"):
        made.execute(session, "x", user="ann")
    with pytest.raises(UnknownSessionError):
        made.execute(session, "x", user="bob")
    first = made.execute(other, "x", user="bob")
    gate.let.set()
    assert made.wait(session, running, 60, user="ann").status is OperationStatus.FINISHED
    made.wait(other, first, 60, user="bob")
    second = made.execute(other, "x", user="bob")
    made.wait(other, second, 60, user="bob")
    with pytest.raises(LimitError, match="48 bytes"):
        made.execute(other, "x", user="bob")
    made.close_operation(other, first, user="bob")
    made.execute(other, "x", user="bob")


def test_the_audit_log_has_who_did_what_and_no_secrets(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    made, _ = gateway(tmp_path, tidemill__gateway__audit_file=str(file))
    session = made.open_session({}, name="mine", user="ann")
    operation = made.execute(session, "CREATE TABLE t (a INT) WITH ('password' = 'hidden')", user="ann")
    made.wait(session, operation, 60, user="ann")
    made.configure_session(session, "SET 'a' = 'b'", user="ann")
    made.close_session(session, user="ann")
    access = Access(users_by(f"{__name__}:check_of_a_program"), audit=made.audit)
    with pytest.raises(AccessError):
        access.user("Basic " + base64.b64encode(b"eve:guess").decode())
    with pytest.raises(AccessError):
        access.by_password("eve", "guess")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["event"], line["user"], line.get("session")) for line in lines] == [
        ("open session", "ann", session),
        ("execute", "ann", session),
        ("configure session", "ann", session),
        ("close session", "ann", session),
        ("refused", "eve", None),
        ("refused", "eve", None),
    ]
    assert lines[1]["operation"] == operation
    assert lines[1]["statement"].startswith("CREATE TABLE t (a INT) WITH ('password' = '")
    assert "hidden" not in file.read_text()
    assert "guess" not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    made.close()
    with pytest.raises(SetupError, match="cannot be written"):
        gateway(tmp_path, tidemill__gateway__audit_file=str(tmp_path / "no" / "folder"))
