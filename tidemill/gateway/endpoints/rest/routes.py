"""The table of routes: which request, in which versions, does what."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.gateway.endpoints.rest import handlers as h
from tidemill.gateway.endpoints.rest import soon
from tidemill.gateway.endpoints.rest.call import NEWEST
from tidemill.gateway.endpoints.rest.handlers import Handler
from tidemill.gateway.endpoints.rest.soon import Soon

_SESSION = "/sessions/{session_handle}"
_OPERATION = _SESSION + "/operations/{operation_handle}"
_WORKFLOW = "/workflow/embedded-scheduler"


@dataclass(frozen=True, slots=True)
class RestRoute:
    """``versions``: first and last. ``fields``: of the request's body, for the description. ``waits``: it may
    take a while, and runs in a thread; what does not is answered in the event loop, where all others wait.
    ``soon``: does so where it can. ``name``: its own, where several routes have the handler."""

    method: str
    path: str
    handler: Handler
    versions: tuple[int, int] = (1, NEWEST)
    fields: tuple[str, ...] = ()
    waits: bool = True
    soon: Soon | None = None
    name: str = ""

    @property
    def id(self) -> str:
        """Which no other route has."""
        return self.name or self.handler.__name__


FLINK = (
    RestRoute("GET", "/info", h.info, waits=False),
    RestRoute("GET", "/api_versions", h.api_versions, waits=False),
    RestRoute("POST", "/sessions", h.open_session, fields=("sessionName", "properties")),
    RestRoute("GET", _SESSION, h.session_config, waits=False),
    RestRoute("DELETE", _SESSION, h.close_session),
    RestRoute("POST", f"{_SESSION}/heartbeat", h.heartbeat, waits=False),
    RestRoute(
        "POST",
        f"{_SESSION}/configure-session",
        h.configure_session,
        (2, NEWEST),
        ("statement", "executionTimeout"),
    ),
    RestRoute(
        "GET", f"{_SESSION}/complete-statement", h.complete_statement, (2, NEWEST), ("statement", "position")
    ),
    RestRoute(
        "POST",
        f"{_SESSION}/statements",
        h.execute_statement,
        fields=("statement", "executionTimeout", "executionConfig"),
        soon=soon.execute_statement,
    ),
    RestRoute("GET", f"{_OPERATION}/status", h.operation_status, waits=False),
    RestRoute("POST", f"{_OPERATION}/cancel", h.cancel_operation),
    RestRoute("DELETE", f"{_OPERATION}/close", h.close_operation, soon=soon.close_operation),
    RestRoute("GET", f"{_OPERATION}/result/{{token}}", h.fetch_results, soon=soon.fetch_results),
    RestRoute("POST", f"{_SESSION}/materialized-tables/{{identifier}}/refresh", h.refresh_table, (3, 3)),
    RestRoute("POST", f"{_WORKFLOW}/create", h.no_workflow, (3, 3), name="create_workflow"),
    RestRoute("POST", f"{_WORKFLOW}/suspend", h.no_workflow, (3, 3), name="suspend_workflow"),
    RestRoute("POST", f"{_WORKFLOW}/resume", h.no_workflow, (3, 3), name="resume_workflow"),
    RestRoute("DELETE", f"{_WORKFLOW}/delete", h.delete_workflow, (3, 3)),
    RestRoute(
        "POST", f"{_SESSION}/scripts", h.deploy_script, (4, 4), ("script", "scriptUri", "executionConfig")
    ),
)
FLIP_91 = (
    RestRoute("POST", _SESSION, h.heartbeat, waits=False, name="proposed_heartbeat"),
    RestRoute("PUT", f"{_OPERATION}/cancel", h.cancel_operation, name="proposed_cancel"),
    RestRoute("DELETE", _OPERATION, h.close_operation, soon=soon.close_operation, name="proposed_close"),
    RestRoute(
        "POST",
        f"{_SESSION}/configure_session",
        h.configure_session,
        fields=("statement", "execution_timeout"),
        name="proposed_configure",
    ),
    RestRoute(
        "GET",
        f"{_SESSION}/complete_statement",
        h.complete_statement,
        fields=("statement", "position"),
        name="proposed_complete",
    ),
)
"""What the proposal's own text has, beside what became of it."""
ROUTES = FLINK + FLIP_91


def versions_of(route: RestRoute) -> range:
    first, last = route.versions
    return range(first, last + 1)
