"""The tables that a store writes, and the upserts made of them.

Every write is one statement over arrays (``unnest``): 100,000 words are one round trip. Rows that stand there
already, unchanged, are not written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

Row = tuple[Any, ...]
"""Values in the order of ``Table.columns``."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of which each row belongs to one media; ``key`` is what identifies it beside ``media_id``."""

    name: str
    key: tuple[str, ...]
    columns: dict[str, str]
    """Column name to PostgreSQL type, the key first."""

    def upsert(self) -> str:
        """The statement; parameters are ``media_id`` and one array for each column.

        >>> Table("t", ("i",), {"i": "bigint", "x": "text"}).upsert().split()[-10:]
        ['set', 'x', '=', 'excluded.x', 'where', '(t.x)', 'is', 'distinct', 'from', '(excluded.x)']
        """
        return self._upsert(f"select :media_id, rows.* from unnest({_arrays(self.columns)}) as rows")

    def upsert_of_many(self) -> str:
        """The statement for rows of many media: parameter ``media_id`` is an array, too."""
        return self._upsert(f"select * from unnest({_arrays({'media_id': 'text', **self.columns})})")

    def _upsert(self, rows: str) -> str:
        rest = [name for name in self.columns if name not in self.key]
        return (
            f"insert into lecturemill.{self.name} as t (media_id, {', '.join(self.columns)}) {rows}"
            f" on conflict (media_id, {', '.join(self.key)})"
            f" do update set {', '.join(f'{name} = excluded.{name}' for name in rest)}"
            f" where ({', '.join(f't.{name}' for name in rest)})"
            f" is distinct from ({', '.join(f'excluded.{name}' for name in rest)})"
        )


def _arrays(columns: Mapping[str, str]) -> str:
    return ", ".join(f"cast(:{name} as {kind}[])" for name, kind in columns.items())


SPAN = {"start_ms": "bigint", "end_ms": "bigint"}

SLICES = Table(
    "slice",
    ("slicing_fingerprint", "slice_index"),
    {"slicing_fingerprint": "text", "slice_index": "bigint", **SPAN, "boundary": "text", "speech": "jsonb"},
)
SLICE_TRANSCRIPTS = Table(
    "slice_transcript",
    ("slicing_fingerprint", "slice_index", "asr_fingerprint"),
    {
        "slicing_fingerprint": "text",
        "slice_index": "bigint",
        "asr_fingerprint": "text",
        "language": "text",
        "language_probability": "double precision",
        "segments": "jsonb",
        "outcome": "text",
        "reason": "text",
        "attempts": "bigint",
        "engine_ms": "bigint",
        "engine": "text",
    },
)
PLANS = Table(
    "plan",
    ("slicing_fingerprint", "asr_fingerprint"),
    {
        "slicing_fingerprint": "text",
        "asr_fingerprint": "text",
        "slice_count": "bigint",
        "duration_ms": "bigint",
        "missing": "jsonb",
        "warnings": "jsonb",
        "slicing_ms": "bigint",
    },
)
SENTENCES = Table(
    "sentence", ("sentence_index",), {"sentence_index": "bigint", **SPAN, "text": "text", "language": "text"}
)
WORDS = Table(
    "word",
    ("word_index",),
    {
        "word_index": "bigint",
        "sentence_index": "bigint",
        **SPAN,
        "text": "text",
        "probability": "double precision",
        "speaker": "text",
    },
)
CUES = Table(
    "cue",
    ("cue_index",),
    {"cue_index": "bigint", **SPAN, "text": "text", "language": "text", "following": "text", "speaker": "text"},
)
VIOLATIONS = Table(
    "violation",
    ("violation_index",),
    {
        "violation_index": "bigint",
        "cue_index": "bigint",
        "rule": "text",
        "measured": "double precision",
        "allowed": "double precision",
    },
)
REPLACEMENTS = Table(
    "replacement",
    ("replacement_index",),
    {
        "replacement_index": "bigint",
        **SPAN,
        "before": "text",
        "after": "text",
        "rule": "text",
        "score": "double precision",
    },
)
QUALITIES = Table(
    "cue_quality",
    ("cue_index",),
    {
        "cue_index": "bigint",
        "score": "double precision",
        "expected_errors": "double precision",
        "words": "bigint",
        "doubtful_words": "bigint",
        "replacements": "bigint",
        "unheard_ms": "bigint",
        "objection": "text",
    },
)
LEDGER = Table("ledger_span", ("start_ms",), {**SPAN, "outcome": "text", "reason": "text"})
PARTS_OF_A_RESULT = (SENTENCES, WORDS, CUES, VIOLATIONS, REPLACEMENTS, QUALITIES)
"""What there is only of a finished media; the ledger there is of a failed one, too."""


def upsert(connection: Connection, table: Table, media_id: str, rows: Sequence[Row]) -> None:
    """Insert or update ``rows``; no two of them may have one key."""
    if rows:
        arrays = dict(zip(table.columns, map(list, zip(*rows, strict=True)), strict=True))
        connection.execute(text(table.upsert()), {"media_id": media_id, **arrays})


def upsert_of_many(connection: Connection, table: Table, rows: Iterable[Row]) -> None:
    """Insert or update rows of many media, each with its media id in front; of two with one key, the later.

    They are written in the order of their keys, so that two writers of the same rows cannot deadlock.
    """
    length = 1 + len(table.key)
    by_key = {row[:length]: row for row in rows}
    if by_key:
        columns = zip(*(by_key[key] for key in sorted(by_key)), strict=True)
        arrays = dict(zip(("media_id", *table.columns), map(list, columns), strict=True))
        connection.execute(text(table.upsert_of_many()), arrays)


def replace(connection: Connection, table: Table, media_id: str, rows: Sequence[Row]) -> None:
    """Make ``rows`` all that the media has in a table whose key is one number: surplus rows go."""
    (key,) = table.key
    connection.execute(
        text(
            f"delete from lecturemill.{table.name} where media_id = :media_id and {key} <> all(cast(:kept as bigint[]))"
        ),
        {"media_id": media_id, "kept": [row[0] for row in rows]},
    )
    upsert(connection, table, media_id, rows)


def select(connection: Connection, table: Table, media_id: str) -> list[Row]:
    """All rows of the media, by key."""
    names = ", ".join(f"{name}::text" if kind == "jsonb" else name for name, kind in table.columns.items())
    statement = f"select {names} from lecturemill.{table.name} where media_id = :media_id order by {table.key[0]}"
    return [tuple(row) for row in connection.execute(text(statement), {"media_id": media_id})]
