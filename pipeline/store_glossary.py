"""The glossaries of courses in PostgreSQL: each import is a new version, and the old ones stay."""

from __future__ import annotations

from sqlalchemy import Connection, text

from pipeline import store_statements as statements
from pipeline.postprocess.terms import Glossary, Term
from pipeline.store_rows import checked_key, clean


def record_glossary(connection: Connection, course_id: str, glossary: Glossary, source: str) -> int:
    """Make it the newest version, unless the newest one is equal; returns the version."""
    connection.execute(text(statements.LOCK_GLOSSARIES))
    newest = load_glossary(connection, checked_key(course_id), None)
    terms = tuple(_cleaned(term) for term in glossary.terms)
    if newest is not None and newest.version is not None and newest.terms == terms:
        return newest.version
    version = (newest.version or 0) + 1 if newest else 1
    key = {"course_id": course_id, "version": version}
    connection.execute(text(statements.NEW_GLOSSARY), {**key, "source": clean(source)})
    if terms:
        connection.execute(
            text(statements.RECORD_TERMS),
            [{**key, "position": place, **_values(term)} for place, term in enumerate(terms)],
        )
    return version


def load_glossary(connection: Connection, course_id: str, version: int | None) -> Glossary | None:
    """That version, or the newest one; None where the course has no such."""
    key = {"course_id": course_id, "version": version}
    found = connection.scalar(text(statements.GLOSSARY_VERSION), key)
    if found is None:
        return None
    rows = connection.execute(text(statements.GLOSSARY), {"course_id": course_id, "version": found})
    terms = tuple(Term(term, tuple(aliases), language, note) for term, aliases, language, note in rows)
    return Glossary(terms, version=found)


def _cleaned(term: Term) -> Term:
    return Term(clean(term.term), tuple(clean(alias) for alias in term.aliases), clean(term.language), clean(term.note))


def _values(term: Term) -> dict[str, object]:
    return {"term": term.term, "aliases": list(term.aliases), "language": term.language, "note": term.note}
