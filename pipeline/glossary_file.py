"""A course's glossary as its editor keeps it: a CSV with the columns ``term,aliases,language,note``."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from pipeline.errors import InvalidInputError, UsageError
from pipeline.postprocess.terms import Glossary, Term

COLUMNS = ("term", "aliases", "language", "note")

_CODES = (
    "af am ar as az ba be bg bn bo br bs ca cs cy da de el en es et eu fa fi fo fr gl gu ha haw he hi "
    "hr ht hu hy id  is it ja jw ka kk km kn ko la lb ln lo lt lv mg mi mk ml mn mr ms mt my ne nl nn "
    "no oc pa pl ps pt ro ru sa sd  si sk sl sn so sq sr su sv sw ta te tg th tk tl tr tt uk ur uz vi "
    "yi yo yue zh"
)
LANGUAGES = frozenset(_CODES.split())
"""The codes of the languages that Whisper knows."""

_SEPARATORS = re.compile("[|;；]")


def load_glossary(path: Path) -> Glossary:
    """The glossary in a CSV file: UTF-8 (with or without a byte order mark), header
    ``term,aliases,language,note``.

    Aliases are separated by ``|`` or ``;``; an empty language means every language; blank lines are ignored.
    Raises ``InvalidInputError`` with a line for each bad row, naming row and column: nothing of the file is
    used then. Raises ``UsageError`` where the file cannot be read.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path}: the glossary cannot be read ({error.strerror}); give the path of a CSV file"
        ) from error
    return parse_glossary(content, str(path))


def parse_glossary(content: bytes, source: str) -> Glossary:
    """The glossary in the bytes of a CSV file; ``source`` names it in errors. Errors as in
    ``load_glossary``.
    """
    rows = _rows(_decoded(content, source), source)
    seen = _Seen(source)
    if not rows or _cells(rows[0][1]) != list(COLUMNS):
        raise _bad(source, rows[0][0] if rows else 1, "term", f"the header must be {','.join(COLUMNS)}")
    terms: list[Term] = []
    bad: list[str] = []
    for number, row in rows[1:]:
        try:
            term = _term(number, row, source)
            terms += [term] if seen.is_new(number, term) else []
        except InvalidInputError as error:
            bad.append(error.reason)
    if bad:
        raise InvalidInputError("\n".join(bad))
    return Glossary(tuple(terms))


def _decoded(content: bytes, source: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        column = min(before.rpartition(b"\n")[2].count(b","), len(COLUMNS) - 1)
        reason = "the text is not UTF-8; save the file as UTF-8"
        raise _bad(source, before.count(b"\n") + 1, COLUMNS[column], reason) from error


def _rows(text: str, source: str) -> list[tuple[int, list[str]]]:
    """The rows that are not blank, with their numbers as a spreadsheet counts them."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[tuple[int, list[str]]] = []
    try:
        rows += ((number, row) for number, row in enumerate(reader, start=1) if any(_cells(row)))
    except csv.Error as error:
        raise _bad(source, (rows[-1][0] if rows else 0) + 1, "term", f"the row is no CSV ({error})") from error
    return rows


def _cells(row: Iterable[str]) -> list[str]:
    return [cell.strip() for cell in row]


def _term(number: int, row: Sequence[str], source: str) -> Term:
    cells = _cells(row)
    if len(cells) > len(COLUMNS):
        reason = f"there are {len(cells)} columns instead of {len(COLUMNS)}; quote a cell that holds a comma"
        raise _bad(source, number, str(len(COLUMNS) + 1), reason)
    term, aliases, language, note = [*cells, *[""] * (len(COLUMNS) - len(cells))]
    if not any(char.isalnum() for char in term):
        raise _bad(source, number, "term", "the term is missing" if not term else f"{term!r} has no letter")
    if language and language not in LANGUAGES:
        raise _bad(
            source,
            number,
            "language",
            f"{language!r} is no language code; use zh, en, or another ISO 639-1 code",
        )
    return Term(term, _aliases(number, term, aliases, source), language, note)


def _aliases(number: int, term: str, cell: str, source: str) -> tuple[str, ...]:
    aliases = [alias.strip() for alias in _SEPARATORS.split(cell) if alias.strip()]
    for alias in aliases:
        if not any(char.isalnum() for char in alias):
            raise _bad(source, number, "aliases", f"{alias!r} has no letter")
    return tuple(dict.fromkeys(alias for alias in aliases if alias != term))


class _Seen:
    """Which row claimed each spelling: one spelling can stand for one term only."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._terms: dict[str, tuple[int, Term]] = {}
        self._aliases: dict[str, tuple[int, Term]] = {}

    def is_new(self, number: int, term: Term) -> bool:
        """Whether the term must be kept; a row that repeats another one exactly is not."""
        row, same = self._terms.get(term.term, (0, term))
        if row and (set(same.aliases), same.language) != (set(term.aliases), term.language):
            raise _bad(
                self._source,
                number,
                "term",
                f"{term.term!r} is in row {row} with other aliases or another language",
            )
        self._check_clashes(number, term)
        self._terms.setdefault(term.term, (number, term))
        for alias in term.aliases:
            self._aliases.setdefault(alias, (number, term))
        return not row

    def _check_clashes(self, number: int, term: Term) -> None:
        row, other = self._aliases.get(term.term, (0, term))
        if row:
            raise _bad(self._source, number, "term", f"{term.term!r} is an alias of {other.term!r} in row {row}")
        for alias in term.aliases:
            row, other = self._terms.get(alias) or self._aliases.get(alias, (0, term))
            if row and other.term != term.term:
                raise _bad(self._source, number, "aliases", f"{alias!r} stands for {other.term!r} in row {row}")


def _bad(source: str, number: int, column: str, reason: str) -> InvalidInputError:
    return InvalidInputError(f"row {number}, column {column}: {reason}", source=source)
