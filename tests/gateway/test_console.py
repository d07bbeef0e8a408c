"""The console's files and what it asks, over a real socket, with statements that run no SQL."""

from __future__ import annotations

import base64
import http.client
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.fakes import Gate, Scripted, gateway
from tidemill.config.option import Configuration
from tidemill.gateway.endpoints.rest.endpoint import RestEndpoint
from tidemill.gateway.endpoints.rest.lineage import Flow, lineage
from tidemill.gateway.security.passes import HOURS, MOST, Passes
from tidemill.gateway.security.users import password_hash
from tidemill.gateway.service.service import Gateway
from tidemill.runtime.events import EpochBegun, JobBegun, JobFailed, JobResumed, SavepointWritten, SoFar
from tidemill.runtime.job.plan_nodes import PlanNode, PlanRole
from tidemill.runtime.progress import EpochProgress, NodeProgress
from tidemill.session.history.records import Records
from tidemill.session.history.watch import EPOCHS, JOBS, JobWatch
from tidemill.session.jobs.job import EndedJob
from tidemill.session.jobs.started import Jobs
from tidemill.sql.redaction import LONGEST, redacted_statement

Ask = Callable[..., tuple[int, dict[str, str], Any]]
GATE = Gate()
SECRET = "CREATE TABLE t (a INT) WITH ('connector' = 'jdbc', 'password' = 'hunter2')"


@contextmanager
def served(made: Gateway, options: Mapping[str, str] | None = None) -> Iterator[Ask]:
    endpoint = RestEndpoint(made, Configuration({"sql-gateway.endpoint.rest.port": "0", **(options or {})}))
    endpoint.start()
    port = int(endpoint.address.rpartition(":")[2])

    def ask(method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], Any]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        found = answer.read()
        connection.close()
        kind = answer.headers.get("content-type", "")
        parsed = json.loads(found) if kind.startswith("application/json") else found.decode()
        return answer.status, {k.lower(): v for k, v in answer.headers.items()}, parsed

    try:
        yield ask
    finally:
        endpoint.stop()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    found, _ = gateway(tmp_path_factory.mktemp("gateway"), {"wait": GATE})
    yield found
    GATE.let.set()
    found.close()


@pytest.fixture(scope="module")
def ask(made: Gateway) -> Iterator[Ask]:
    with served(made) as asked:
        yield asked


def test_a_browser_gets_files_that_run_no_script_but_their_own(ask: Ask) -> None:
    for path in ("/", "/console"):
        status, headers, _ = ask("GET", path)
        assert (status, headers["location"]) == (307, "/console/")
    status, headers, page = ask("GET", "/console/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert headers["x-content-type-options"] == "nosniff"
    assert not re.search(r"<script(?![^>]*\ssrc=)|\son\w+=|style=|https?:", page)
    named = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert "app/main.js" in named
    kinds = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    for path in named:
        status, headers, _ = ask("GET", f"/console/{path}")
        assert (status, headers["content-type"].split(";")[0]) == (200, kinds[path.rpartition(".")[2]])
    tag = headers["etag"]
    assert ask("GET", f"/console/{named[-1]}", if_none_match=tag)[0] == 304
    for path in ("none.js", "../../start.py", "%2e%2e/%2e%2e/start.py", "app/"):
        assert ask("GET", f"/console/{path}")[0] == 404


def test_its_modules_name_files_that_are_there_and_make_no_markup_of_text() -> None:
    root = Path(__file__).parents[2] / "tidemill" / "gateway" / "console"
    modules = list(root.rglob("*.js"))
    assert len(modules) > 20
    for module in modules:
        text = module.read_text(encoding="utf-8")
        for named in re.findall(r'from "(\.[^"]+)"', text):
            assert (module.parent / named).is_file(), (module, named)
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text
        )
        assert "http" not in re.sub(r"http://www\.w3\.org/2000/svg", "", text), module


def test_sessions_and_their_statements_without_secrets(made: Gateway, ask: Ask) -> None:
    session = made.open_session({}, name="mine")
    done = made.execute(session, SECRET)
    waiting = made.execute(session, "wait")
    assert GATE.running.wait(60)
    (found,) = [s for s in ask("GET", "/console/api/sessions")[2]["sessions"] if s["handle"] == session]
    assert found["name"] == "mine"
    first, second = found["operations"]
    assert (first["handle"], first["status"], first["statement"]) == (waiting, "RUNNING", "wait")
    assert (second["handle"], second["status"]) == (done, "FINISHED")
    assert second["statement"] == SECRET.replace("hunter2", "******")
    assert ask("POST", f"/v4/sessions/{session}/operations/{waiting}/cancel")[0] == 200
    candidates = ask("POST", f"/console/api/sessions/{session}/complete", {"statement": "SEL", "position": 2})
    assert candidates[2] == {"candidates": ["SE"]}


def test_jobs_that_have_ended_are_seen_by_their_user(tmp_path: Path) -> None:
    kept = {"me": Records(str(tmp_path / "me"), 10), "": Records(str(tmp_path / "nobody"), 10)}
    brief = {"name": "sum", "mode": "batch", "status": "FAILED", "error": "no", "begun": 1, "ended": 2}
    for number in range(3):
        kept[""].add(number, f"job-{number}", {"id": f"job-{number}", **brief, "stages": [{"tasks": number}]})
    counted = {"rows_in": 7, "rows_out": 2, "statement": "SELECT 1", "stages": []}
    kept[""].add(2, "job-2", {"id": "job-2", **brief, **counted})
    kept["me"].add(0, "mine", {"id": "mine", **brief})
    made = Gateway(
        config=Configuration(), new_session=lambda *_: Scripted(tmp_path), records=lambda user: kept[user]
    )
    with served(made) as ask:
        found = ask("GET", "/console/api/history?last=2")[2]["jobs"]
        told = {"rows_in": "7", "rows_out": "2", "statement": "SELECT 1"}
        unknown = {"rows_in": None, "rows_out": None, "statement": ""}
        assert found == [{"id": "job-2", **brief, **told}, {"id": "job-1", **brief, **unknown}]
        assert ask("GET", "/console/api/history/job-1")[2]["stages"] == [{"tasks": 1}]
        assert ask("GET", "/console/api/history/mine")[0] == 404
        assert ask("GET", "/console/api/history?last=x")[0] == 400
    made.close()


def test_a_script_falls_into_statements(ask: Ask) -> None:
    script = "SET 'a' = ';';\n  EXECUTE STATEMENT SET BEGIN INSERT INTO t VALUES (1); END;-- no more"
    status, _, found = ask("POST", "/console/api/split", {"script": script})
    assert status == 200
    places = [(p["line"], p["column"], p["text"]) for p in found["statements"]]
    assert places == [
        (1, 1, "SET 'a' = ';'"),
        (2, 3, "EXECUTE STATEMENT SET BEGIN INSERT INTO t VALUES (1); END"),
    ]
    status, _, error = ask("POST", "/console/api/split", {"script": "SELECT 'a"})
    assert status == 400
    assert "does not end" in error["errors"][0]


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        (SECRET, SECRET.replace("hunter2", "******")),
        ("SET 'my.secret.key' = 'x''y';", "SET 'my.secret.key' = '******';"),
        ("SET my.access-key = some words 7", "SET my.access-key = '******'"),
        ("SELECT * FROM t WHERE password = 'x'", "SELECT * FROM t WHERE password = 'x'"),
        (
            "SET 'url' = 'jdbc:x://me:hunter2@host/d?password=p'",
            "SET 'url' = 'jdbc:x://me:******@host/d?password=******'",
        ),
        ("SET 'password' = 'not closed", "SET 'password' = …"),
        ("SELECT 1", "SELECT 1"),
        ("", ""),
    ],
)
def test_what_is_shown_of_a_statement(statement: str, shown: str) -> None:
    assert redacted_statement(statement) == shown


def test_a_secret_at_the_end_of_what_is_shown_is_not_cut_open() -> None:
    start = "SELECT 1 WHERE 'password' = '"
    for before in (LONGEST - len(start) - 3, LONGEST - len(start) - 1, LONGEST - len(start)):
        text = redacted_statement(" " * before + start + "hunter2' AND 1 = 1")
        assert "hun" not in text
        assert text.endswith("…")


PLAN = (
    PlanNode(id="in", role=PlanRole.SOURCE, name="visits", detail="a, b"),
    PlanNode(id="op", role=PlanRole.OPERATOR, name="GroupAggregate", detail="groupBy=[a]", inputs=("in",)),
    PlanNode(id="out", role=PlanRole.SINK, name="totals", inputs=("op",)),
)


def epoch(number: int, job: str = "j", **nodes: NodeProgress) -> EpochProgress:
    return EpochProgress(
        epoch=number,
        rows_in=10,
        rows_out=4,
        seconds=0.5,
        state_rows=3,
        state_bytes=300,
        job_id=job,
        watermark=1_000,
        time=3_500,
        nodes=nodes,
    )


SPREAD = {"0": 1, "10": 5, "2": 0}


def test_a_job_is_watched_by_its_user_alone(tmp_path: Path) -> None:
    made, _ = gateway(tmp_path)
    mine = Jobs()
    mine.add(EndedJob("j", "insert-into_totals", "FAILED", "no way to jdbc:x://me:hunter2@host/d"))
    made.jobs = lambda user: mine if user == "" else Jobs()
    watch = made.watch("")
    told = {"statement": "INSERT INTO totals SELECT 1", "directory": "/kept"}
    options = {"parallelism.default": "2", "tidemill.gateway.directory": "/secret"}
    watch.event(JobBegun(job_id="j", name="insert-into_totals", plan=PLAN, options=options, **told))
    watch.event(JobResumed(job_id="j", epoch=6))
    done = NodeProgress(
        rows_in=1 << 60, rows_out=4, state_rows=3, state_bytes=300, late=1, largest_key=7, partitions=SPREAD
    )
    watch.epoch(epoch(7, op=done, out=NodeProgress(rows_in=4)))
    watch.epoch(epoch(8, op=NodeProgress(rows_in=1 << 60)))
    watch.event(JobFailed(job_id="j", error="lost jdbc:x://me:hunter2@host/d", wait=1.5))
    watch.event(EpochBegun(job_id="j", epoch=9, so_far=lambda: SoFar(0, 1, 0)))
    watch.event(SavepointWritten(job_id="j", path="/s/savepoint-1", at=7.0))
    made.watch("ann").event(JobBegun(job_id="hers", name="", plan=()))
    with served(made) as ask:
        (listed,) = ask("GET", "/console/api/jobs")[2]["jobs"]
        assert (listed["status"], listed["epochsDone"], listed["rowsIn"]) == ("FAILED", 2, "20")
        found = ask("GET", "/console/api/jobs/j")[2]
        assert found["error"] == "no way to jdbc:x://me:******@host/d"
        assert (found["resumed"], found["running"]) == (6, None)  # it has failed: no epoch is under way
        assert found["options"] == {"parallelism.default": "2"}
        assert {key: found[key] for key in told} == told
        assert found["savepoints"] == [{"path": "/s/savepoint-1", "at": 7000}]
        assert [n["rowsIn"] for n in found["plan"] if n["role"] == "source"] == [None]
        ((failure),) = found["failures"]
        assert (failure["error"], failure["wait"]) == ("lost jdbc:x://me:******@host/d", 1.5)
        assert [n["inputs"] for n in found["plan"]] == [[], ["in"], ["op"]]
        operator, sink = found["plan"][1:]
        assert (operator["rowsIn"], operator["rowsOut"], operator["late"]) == (str(1 << 61), "4", "1")
        assert (operator["partitions"], operator["skew"], operator["largestKey"]) == ([1, 0, 5], 2.5, 7)
        assert (operator["stateRows"], operator["stateBytes"], sink["rowsIn"]) == ("3", 300, "4")
        assert [e["epoch"] for e in found["epochs"]] == [7, 8]
        assert found["epochs"][0]["behind"] == 2.5
        for unknown in ("hers", "none"):
            assert ask("GET", f"/console/api/jobs/{unknown}")[0] == 404
            assert ask("POST", f"/console/api/jobs/{unknown}/stop", {})[0] == 404
            assert ask("POST", f"/console/api/jobs/{unknown}/savepoint", {})[0] == 404
        assert ask("POST", "/console/api/jobs/j/savepoint", {})[0] == 400
        status, _, error = ask("POST", "/console/api/jobs/j/stop", {"savepointDirectory": "/s"})
        assert status == 500
        assert "does not run" in error["errors"][0]
        status, _, error = ask("POST", "/console/api/jobs/j/savepoint", {"savepointDirectory": "/s"})
        assert (status, "does not run" in error["errors"][0]) == (500, True)


def _flow(job: str, reads: str, writes: str, name: str = "") -> Flow:
    return Flow(
        job_id=job, name=name or job, status="FINISHED", reads=frozenset(reads), writes=frozenset(writes)
    )


def test_lineage_over_jobs_and_tables() -> None:
    flows = [_flow("1", "a", "b"), _flow("2", "bc", "d"), _flow("query", "d", ""), _flow("3", "d", "a")]
    found = lineage([*flows, _flow("old", "a", "b", name="1")])
    nodes = {node["id"]: node for node in found["nodes"]}
    assert {key: set(node["inputs"]) for key, node in nodes.items()} == {
        "table a": set(),
        "job 1": {"table a"},
        "table b": {"job 1"},
        "table c": set(),
        "job 2": {"table b", "table c"},
        "table d": {"job 2"},
        "job 3": {"table d"},
    }
    order = list(nodes)
    assert all(
        order.index(below) < order.index(key) for key, node in nodes.items() for below in node["inputs"]
    )
    assert found["circles"] == [["3", "a"]]
    assert (nodes["job 1"]["runs"], nodes["job 1"]["job"], nodes["job 2"]["runs"]) == (2, "1", 1)


RECORD = {"name": "n", "mode": "batch", "status": "FINISHED", "error": "", "begun": 1, "ended": 2}


def test_lineage_of_what_runs_and_of_what_has_ended(tmp_path: Path) -> None:
    made, _ = gateway(tmp_path)
    mine = Jobs()
    mine.add(EndedJob("j", "insert-into_totals", "FAILED"))
    made.jobs = lambda _: mine
    kept = Records(str(tmp_path / "kept"), 10)
    made.records = lambda _: kept
    plan = [{"role": "source", "table": "c.d.totals"}, {"role": "sink", "table": "c.d.report"}]
    kept.add(1, "p", {**RECORD, "id": "p", "plan": plan})
    kept.add(2, "q", {**RECORD, "id": "q", "plan": [{"role": "sink"}]})
    tables = (replace(PLAN[0], table="c.d.in"), PLAN[1], replace(PLAN[2], table="c.d.totals"))
    made.watch("").event(JobBegun(job_id="j", name="insert-into_totals", plan=tables))
    with served(made) as ask:
        found = ask("GET", "/console/api/lineage")[2]["nodes"]
    assert [(n["id"], n.get("past")) for n in found] == [
        ("table c.d.in", None),
        ("job j", False),
        ("table c.d.totals", None),
        ("job p", True),
        ("table c.d.report", None),
    ]


def test_what_is_kept_of_jobs_does_not_grow() -> None:
    watch = JobWatch()
    for number in range(EPOCHS + 5):
        watch.epoch(epoch(number, "old"))
    look = watch.look("old")
    assert look is not None
    assert (len(look.epochs), look.epochs_done, look.epochs[0].epoch) == (EPOCHS, EPOCHS + 5, 5)
    for number in range(JOBS):
        watch.epoch(epoch(1, f"job-{number}"))
    assert watch.look("old") is None
    assert watch.look("job-0") is not None


def test_a_browser_keeps_a_pass_in_place_of_the_password(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text(f"ann:{password_hash('secret')}\n", encoding="utf-8")
    made, _ = gateway(tmp_path)
    options = {"tidemill.gateway.authentication": "PASSWORD", "tidemill.gateway.users-file": str(users)}
    said = "Basic " + base64.b64encode(b"ann:secret").decode()
    with served(made, options) as ask:
        assert ask("GET", "/console/")[0] == 200
        for path in ("hello", "sessions", "jobs", "jobs/x"):
            assert ask("GET", f"/console/api/{path}")[0] == 401
        assert ask("POST", "/console/api/pass", {})[0] == 401
        assert (
            ask("POST", "/console/api/pass", {}, Authorization=said, Origin="http://evil.example")[0] == 403
        )
        status, headers, given = ask("POST", "/console/api/pass", {}, Authorization=said)
        assert (status, headers["cache-control"]) == (200, "no-store")
        bearer = f"Bearer {given['pass']}"
        assert ask("GET", "/console/api/hello", Authorization=bearer)[2]["user"] == "ann"
        assert ask("POST", "/v4/sessions", {}, Authorization=bearer)[0] == 200
        assert ask("DELETE", "/console/api/pass", Authorization=bearer)[0] == 200
        assert ask("GET", "/console/api/hello", Authorization=bearer)[0] == 401


def test_passes_end_and_are_not_kept_without_end() -> None:
    now = [0.0]
    passes = Passes(clock=lambda: now[0])
    first = passes.issue("ann")
    now[0] = HOURS * 3600 - 1
    assert passes.user(first) == "ann"
    assert passes.user("other") is None
    now[0] += 2
    assert passes.user(first) is None
    kept = [passes.issue("bob") for _ in range(MOST + 1)]
    assert passes.user(kept[0]) is None
    assert passes.user(kept[1]) == passes.user(kept[-1]) == "bob"
