"""What is asked of pipelined exchanges: each kind of exchange, and what cannot be pipelined."""

from __future__ import annotations

WIDE = ", ".join(f"s || '{place}' AS s{place}" for place in range(200))
"""Columns enough that eighteen thousand rows may take a hundred megabytes."""
QUERIES = {
    "keys": "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM t GROUP BY k",
    "no keys": "SELECT COUNT(*) AS n, COUNT(DISTINCT k) AS d FROM t",
    "join": "SELECT COUNT(*) AS n, SUM(w) AS w FROM t JOIN u ON t.k = u.k",
    "outer join": "SELECT t.k, COUNT(w) AS n FROM t LEFT JOIN u ON t.k = u.k GROUP BY t.k",
    "first in order": "SELECT k, COUNT(*) AS n FROM t GROUP BY k ORDER BY n DESC, k LIMIT 7",
    "behind an offset": "SELECT k, s, v FROM t ORDER BY v DESC LIMIT 7 OFFSET 11",
    "limit": "SELECT COUNT(*) AS n FROM (SELECT k FROM t LIMIT 4321)",
    "few in order": "SELECT s, COUNT(DISTINCT k) AS n FROM t GROUP BY s ORDER BY s DESC",
    "window": "SELECT * FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM t) "
    "WHERE r <= 2",
    "union": "SELECT k, COUNT(*) AS n FROM (SELECT k FROM t UNION ALL SELECT k FROM u) GROUP BY k",
    "sub-query": "SELECT s, COUNT(*) AS n FROM t WHERE v > (SELECT AVG(v) FROM t) GROUP BY s",
    "union of aggregations": "SELECT SUM(n) AS n FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k "
    "UNION ALL SELECT k, COUNT(*) FROM u GROUP BY k)",
    "list": "SELECT s, LISTAGG(CAST(w AS STRING)) AS l FROM (SELECT DISTINCT 'a' AS s, 1 AS w FROM t) "
    "GROUP BY s",
    "many in order": "SELECT k, s, v FROM t ORDER BY v",
    "in order, nobody knows how many": "SELECT t.k, v FROM t JOIN u ON t.k = u.k ORDER BY v DESC",
    "in order, too many": f"SELECT v, {WIDE} FROM t WHERE v < 2 ORDER BY v DESC",
    "read twice": "SELECT COUNT(*) AS n FROM t a JOIN t b ON a.k = b.k AND a.v < b.v",
    "too many": "SELECT COUNT(*) AS n FROM t a JOIN u b ON a.k = b.k AND a.k > 1 JOIN u c ON b.w = c.k "
    "AND b.w > 2 JOIN u d ON d.w = c.w + 1 AND d.w > 3 JOIN u e ON d.k + 4 = e.k AND e.w > 4",
    "nothing": "SELECT k FROM t WHERE v < 3",
}

BAD = {
    "bad above": "SELECT k, 1 / (COUNT(*) - COUNT(*)) AS n FROM t GROUP BY k",
    "bad below": "SELECT s, SUM(1 / (k - k)) AS n FROM t GROUP BY s",
}
"""Divided by zero by those that read an exchange, and by those that write it."""
