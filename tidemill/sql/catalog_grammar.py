"""CREATE and DROP of everything but tables, and USE."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from tidemill.sql import statements as s
from tidemill.sql.alter_grammar import AlterGrammar
from tidemill.sql.lexer import Token

_UNSUPPORTED_OBJECTS = ("MATERIALIZED", "MODEL", "CONNECTION")


class CatalogGrammar(AlterGrammar):
    def create(self, token: Token) -> s.Statement:
        """Behind CREATE."""
        replace = self.take("OR", "REPLACE")
        if self.take("OR", "ALTER"):
            self.refuse("CREATE OR ALTER")
        temporary = self.take("TEMPORARY")
        system = temporary and self.take("SYSTEM")
        if self.at_any(*_UNSUPPORTED_OBJECTS):
            self.refuse(f"CREATE {self.current.upper}")
        word = self.expect_any("TABLE", "VIEW", "FUNCTION", "CATALOG", "DATABASE")
        if word == "TABLE":
            return self.create_table(token, temporary=temporary, replace=replace)
        if word == "VIEW":
            return self._create_view(token, temporary, replace)
        if replace:
            self.refuse(f"CREATE OR REPLACE {word}", token)
        if word == "FUNCTION":
            return self._create_function(token, temporary, system)
        return self._create_catalog(token) if word == "CATALOG" else self._create_database(token)

    def _create_view(self, token: Token, temporary: bool, replace: bool) -> s.CreateView:
        if_not_exists = self.if_not_exists()
        path = self.names()
        columns = self.name_list() if self.at("(") else ()
        comment = self.comment()
        self.expect("AS")
        first = self.current
        query = self.query()
        return s.CreateView(
            path=path,
            query=query,
            query_text=self.text_since(first),
            query_position=first.position,
            columns=columns,
            comment=comment,
            temporary=temporary,
            if_not_exists=if_not_exists,
            replace=replace,
            text=self.text_since(token),
            position=token.position,
        )

    def _create_function(self, token: Token, temporary: bool, system: bool) -> s.CreateFunction:
        if_not_exists = self.if_not_exists()
        path = self.names()
        self.expect("AS")
        identifier = self.string()
        language = "JAVA"
        if self.take("LANGUAGE"):
            language = self.expect_any("JAVA", "SCALA", "PYTHON", "SQL")
        if self.at("USING"):
            self.refuse("CREATE FUNCTION ... USING JAR")
        return s.CreateFunction(
            path=path,
            identifier=identifier,
            language=language,
            temporary=temporary,
            system=system,
            if_not_exists=if_not_exists,
            text=self.text_since(token),
            position=token.position,
        )

    def _create_catalog(self, token: Token) -> s.CreateCatalog:
        if_not_exists = self.if_not_exists()
        name = self.identifier().name
        comment = self.comment()
        options = self.properties() if self.take("WITH") else ()
        return s.CreateCatalog(
            name=name,
            options=options,
            comment=comment,
            if_not_exists=if_not_exists,
            text=self.text_since(token),
            position=token.position,
        )

    def _create_database(self, token: Token) -> s.CreateDatabase:
        if_not_exists = self.if_not_exists()
        path = self.names()
        comment = self.comment()
        options = self.properties() if self.take("WITH") else ()
        return s.CreateDatabase(
            path=path,
            options=options,
            comment=comment,
            if_not_exists=if_not_exists,
            text=self.text_since(token),
            position=token.position,
        )

    _DROPS: ClassVar[dict[str, type[s.Drop]]] = {
        "TABLE": s.DropTable,
        "VIEW": s.DropView,
        "CATALOG": s.DropCatalog,
        "DATABASE": s.DropDatabase,
    }

    def drop(self, token: Token) -> s.Statement:
        """Behind DROP."""
        temporary = self.take("TEMPORARY")
        system = temporary and self.take("SYSTEM")
        if self.at_any(*_UNSUPPORTED_OBJECTS):
            self.refuse(f"DROP {self.current.upper}")
        word = self.expect_any(*self._DROPS, "FUNCTION")
        if_exists = self.take("IF", "EXISTS")
        path = self.names()
        cascade = word == "DATABASE" and self.take_any("RESTRICT", "CASCADE") == "CASCADE"
        text = self.text_since(token)
        if word == "FUNCTION":
            return s.DropFunction(
                path=path,
                if_exists=if_exists,
                temporary=temporary,
                system=system,
                text=text,
                position=token.position,
            )
        return self._DROPS[word](
            path=path,
            if_exists=if_exists,
            temporary=temporary,
            cascade=cascade,
            text=text,
            position=token.position,
        )

    def use(self, token: Token) -> s.Statement:
        """Behind USE."""
        if self.take("CATALOG"):
            name = self.identifier().name
            return s.UseCatalog(name=name, text=self.text_since(token), position=token.position)
        if self.take("MODULES"):
            names = tuple(self.separated(lambda: self.identifier().name))
            return s.UseModules(names=names, text=self.text_since(token), position=token.position)
        path = self.names()
        return s.UseDatabase(path=path, text=self.text_since(token), position=token.position)

    def alter(self, token: Token) -> s.Statement:
        """Behind ALTER."""
        alters: dict[str, Callable[[Token], s.Statement]] = {
            "TABLE": self.alter_table,
            "VIEW": self.alter_view,
            "DATABASE": self.alter_database,
        }
        if self.at_any("CATALOG", "FUNCTION", "TEMPORARY", *_UNSUPPORTED_OBJECTS):
            self.refuse(f"ALTER {self.current.upper}")
        return alters[self.expect_any(*alters)](token)
