"""The state of a session between statements: catalogs, options, named frames.

Also the binder's view of it (``plan.binder.environment.Environment``): names, functions, time zone.
"""

from __future__ import annotations

import datetime as dt
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from tidemill.catalog.kinds import KINDS, CatalogKind
from tidemill.catalog.manager import CatalogManager
from tidemill.catalog.objects import CatalogFunction
from tidemill.catalog.table import CatalogObject, CatalogTable, ObjectPath
from tidemill.config import registry as options
from tidemill.config import table_options
from tidemill.config.execution_options import SAVEPOINT_DIRECTORY, SAVEPOINT_TARGET
from tidemill.config.option import Configuration
from tidemill.config.python_options import PYTHON_FILES
from tidemill.config.seal import PLAIN
from tidemill.config.unknown_options import unknown_option
from tidemill.errors import NotSupportedError, Position, ValidationError
from tidemill.files.private import own_directory
from tidemill.files.storage import Storage
from tidemill.functions import registry
from tidemill.functions.api import AggregateFunction, ScalarFunction
from tidemill.late import late
from tidemill.runtime.events import JobEvent, unheard
from tidemill.session import user_modules
from tidemill.session.catalogs import from_spark, of_savepoint, outside, stored
from tidemill.session.catalogs.locations import Place, catalog_store, own_catalogs_url
from tidemill.session.jobs.job import JobHandle
from tidemill.session.jobs.started import Jobs
from tidemill.session.modules import METADATA, Modules
from tidemill.session.permissions import EVERYTHING, Permissions
from tidemill.session.time_zone import zone_of
from tidemill.user_functions.kinds import UserFunction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidemill.runtime.checkpoint import savepoint
    from tidemill.runtime.checkpoint.savepoint import Savepoint
    from tidemill.runtime.progress import EpochProgress
    from tidemill.runtime.spark import session as spark_session
    from tidemill.session.catalogs import savepoint_catalog
    from tidemill.session.history.keeper import Keeper
else:
    savepoint = late("tidemill.runtime.checkpoint.savepoint")
    spark_session = late("tidemill.runtime.spark.session")
    savepoint_catalog = late("tidemill.session.catalogs.savepoint_catalog")


UNNAMED = "$table-"
_LOGGER = logging.getLogger("tidemill")


class SessionContext:
    """Mutable, one per session; not shared between threads.

    ``module_folders``: folders with modules of user functions, besides Python's own path. ``jobs``: its jobs;
    sessions may share them. ``jobs_in``: the number of jobs per checkpoint directory. ``work``: the Spark job
    group of the current statement, by which it can be canceled; '' for none. ``on_job`` is called with a
    started INSERT's job before anybody waits for it, ``on_altered`` with an altered one. ``statement``: the
    text of the current statement. ``compiled``: the statement of the current compiled plan; '' for other
    statements. ``place_job``: gives the checkpoint directory of the next INSERT's job; None: the options give
    it. ``catalogs_url``: the default database of catalogs of type ``stored``; ``catalogs_seal`` encrypts
    them. ``rendered``: queries return texts, for clients that only display them. ``on_progress`` is called at
    each epoch's end, ``on_event`` at its start and for resumptions, ``fault`` at each step of a commit (for
    tests). ``clock``: processing time in seconds. ``history`` records ended jobs; None: no records.
    ``warnings``: the warnings for the user. ``permissions``: limits what statements can access.
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self.defaults = configuration or Configuration()
        self.configuration = self.defaults
        self.permissions: Permissions = EVERYTHING
        self.catalogs_url = own_catalogs_url
        self.catalogs_seal = PLAIN
        self.catalogs = CatalogManager(self._catalog_kinds(), catalog_store(self.defaults))
        self.modules = Modules()
        self.frames: dict[str, DataFrame] = {}
        self.module_folders: tuple[str, ...] = ()
        self._user_functions: dict[tuple[str, str], UserFunction] = {}
        self.warnings: list[str] = []
        self.rendered = False
        self.jobs = Jobs()
        self.jobs_in: dict[str, int] = {}
        self.work = ""
        self.compiled = ""
        self.statement = ""
        self.place_job: Callable[[], str] | None = None
        self.on_job: Callable[[JobHandle], None] = lambda _: None
        self.on_altered: Callable[[JobHandle], None] = lambda _: None
        self.on_progress: Callable[[EpochProgress], None] = lambda _: None
        self.on_event: Callable[[JobEvent], None] = unheard
        self.history: Keeper | None = None
        self.fault: Callable[[str], None] = lambda _: None
        self.clock: Callable[[], float] = time.time

    def _catalog_kinds(self) -> Mapping[str, CatalogKind]:
        return {
            **KINDS,
            stored.TYPE: stored.stored_catalogs(self._catalogs_place),
            from_spark.TYPE: from_spark.spark_catalogs(self._spark_of_catalogs),
            "iceberg": outside.outside_catalogs("iceberg", self._check_catalog),
            of_savepoint.TYPE: of_savepoint.savepoint_catalogs(
                self._savepoint_of_catalogs, lambda: self.configuration.read(SAVEPOINT_TARGET)
            ),
        }

    def _check_catalog(self, identifier: str, options: Mapping[str, str]) -> None:
        self.permissions.check_catalog(identifier, options)

    def _catalogs_place(self, url: str, files: Iterable[str]) -> Place:
        """The database of a stored catalog; ``url`` is '' if the catalog names none, ``files``: in the
        URL."""
        if not url:
            return Place(self.catalogs_url(), self.catalogs_seal)
        for place in files:
            self.permissions.check_place(place, "Option 'url' of the catalog")
        self.permissions.check_connector("jdbc")
        return Place(url)

    def _spark_of_catalogs(self) -> SparkSession:
        self.permissions.check_connector("spark")
        return spark_session.spark_application(self.configuration)

    def _savepoint_of_catalogs(self, options: Mapping[str, str]) -> Savepoint:
        """Opens the savepoint of a catalog. The catalog's ``options`` override the session's for object
        stores."""
        settings = {**self.configuration, **options}
        if of_savepoint.JOB in options:
            return savepoint.Savepoint.open(
                Storage.configured(self._look_at(options[of_savepoint.JOB]), settings)
            )
        self.permissions.check_place(options[of_savepoint.PATH], "Option 'path' of the catalog")
        return savepoint.Savepoint.open(Storage.configured(options[of_savepoint.PATH], settings))

    def _look_at(self, job_id: str) -> str:
        """Writes a savepoint of a running job and returns its path. On the checkpoint's disk it consists of
        links."""
        started = self.jobs.find(job_id)
        if started is None:
            running = tuple(s.job.job_id for s in self.jobs.all() if s.job.is_running())
            raise ValidationError(f"There is no job '{job_id}'.", expected=running)
        directory = self.configuration.read(SAVEPOINT_DIRECTORY) or own_directory("state")
        return self.jobs.create_savepoint(started, directory, "")

    @property
    def current_catalog(self) -> str:
        return self.catalogs.current_catalog

    @property
    def current_database(self) -> str:
        return self.catalogs.current_database

    @property
    def options(self) -> Mapping[str, str]:
        return self.configuration

    @property
    def time_zone(self) -> str:
        return self.configuration.read(table_options.LOCAL_TIME_ZONE)

    @property
    def zone(self) -> dt.tzinfo:
        """The session's time zone; ValidationError where the option names none."""
        return zone_of(self.time_zone)

    def resolve(self, path: ObjectPath) -> CatalogObject | None:
        return self.catalogs.find(path)

    def check_table(self, table: CatalogTable, options: Mapping[str, str], position: Position | None) -> None:
        self.permissions.check_table(table, options, position)

    def names_within(self, *parts: str) -> tuple[str, ...]:
        """Without the names that a table of a Python program got because it has none."""
        return tuple(name for name in self.catalogs.names_within(*parts) if not name.startswith(UNNAMED))

    def scalar_function(self, name: str) -> ScalarFunction | None:
        return registry.scalar(name)

    def aggregate_function(self, name: str) -> AggregateFunction | None:
        return registry.aggregate(name)

    def function_table(self, name: str, argument: str) -> CatalogTable | None:
        if not self.modules.state_is_used or name.lower() != METADATA:
            return None
        return savepoint_catalog.metadata_table(Storage.configured(argument, self.configuration))

    def user_function(self, parts: tuple[str, ...], path: ObjectPath) -> UserFunction | None:
        functions = self.catalogs.functions
        found = functions.system(parts[0]) if len(parts) == 1 else None
        if found is None and not (len(parts) == 1 and _is_built_in(parts[0])):
            found = functions.find(path)
        if found is None:
            return None
        return self._loaded(found)

    def _loaded(self, function: CatalogFunction) -> UserFunction:
        """Its module is looked at once for each value of ``python.files``."""
        if function.declared is not None:
            return function.declared
        if function.language != "PYTHON":
            raise NotSupportedError(
                f"Function '{function.name}': functions in {function.language} are not supported",
                hint="Functions are Python: CREATE FUNCTION name AS 'module.attribute' LANGUAGE PYTHON.",
            )
        self.permissions.check_function(function.name, function.implementation)
        files = self.configuration.read(PYTHON_FILES)
        if not self.permissions.own_files:  # then nobody has set it but who made the session
            return user_modules.load_installed(function, files)
        key = (function.implementation, files)
        known = self._user_functions.get(key)
        if known is None:
            known = user_modules.load(function, self.module_folders, files)
            self._user_functions[key] = known
        return known

    def set_option(self, key: str, value: str) -> None:
        """SET: for the statements after it. ValidationError where the text is refused at once."""
        options.check_at_set(key, value)
        self.permissions.check_option(key, value)
        self.configuration = self.configuration.with_value(key, value)
        self.warn_of(key, value)

    def warn_of(self, key: str, value: str) -> None:
        """Warns of an option that changes nothing."""
        self.warn(unknown_option(key))
        self.warn(spark_session.too_late(key, value))

    def warn(self, text: str) -> None:
        """Tells the user something that is no error, once a session; '' is nothing. It goes to the logger
        ``tidemill``."""
        if text and text not in self.warnings:
            self.warnings.append(text)
            _LOGGER.warning(text)

    def function_names(self) -> tuple[str, ...]:
        own = self.catalogs.functions.names(self.current_catalog, self.current_database)
        return (*registry.names(), *(name.upper() for name in own))


def _is_built_in(name: str) -> bool:
    return registry.scalar(name) is not None or registry.aggregate(name) is not None
