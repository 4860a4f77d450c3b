"""Subcommands about the machine: the models, the database, what is wrong with either."""

from __future__ import annotations

import os
import signal
from typing import Annotated

import typer

from pipeline import doctor
from pipeline.cli_common import FAILED, AsJson, Database
from pipeline.console import complain, print_json, print_table, write_out
from pipeline.database import connect
from pipeline.errors import UsageError
from pipeline.models import fetch_model, list_models
from pipeline.query import run_query
from pipeline.settings import open_database, settings_from

models_app = typer.Typer(help="The models: which there are, and fetching them.", no_args_is_help=True)
db_app = typer.Typer(help="The database: its tables, and SQL over it.", no_args_is_help=True)


@models_app.command("list")
def models_list(as_json: AsJson = False) -> None:
    """Models that can be fetched by name; any CTranslate2 Whisper folder works as well."""
    found = list_models(settings_from(os.environ).models)
    if as_json:
        print_json(found)
        return
    rows = [(m.name, "here" if m.is_present else "", round(m.size_bytes / 1e6), m.licence, m.purpose) for m in found]
    print_table("", ("name", "", "MB", "licence", "purpose"), rows)


@models_app.command("fetch")
def models_fetch(name: Annotated[str, typer.Argument(help="See: lecturemill models list.")]) -> None:
    """Fetch a model into the cache; every file is checked against its sha256."""
    model = fetch_model(name, settings_from(os.environ).models, complain)
    write_out(f"{model.folder}\n")


@db_app.command("upgrade")
def db_upgrade(database: Database = None) -> None:
    """Create or upgrade the tables and views."""
    with open_database(settings_from(os.environ, database)):
        typer.echo("the database is up to date")


@db_app.command("query")
def db_query(
    sql: Annotated[str, typer.Argument(help="SQL text, or a file that holds it.")],
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Answer one SQL query over the views transcripts, cues, words, ledger, cost; read-only."""
    with open_database(settings_from(os.environ, database)) as url:
        columns, rows = run_query(url, sql)
    if as_json:
        if len(set(columns)) < len(columns):
            raise UsageError("two columns have one name; tell them apart by AS")
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
        return
    print_table("", columns, rows)


@db_app.command("serve")
def db_serve() -> None:
    """Keep the embedded database up for psql and other programs, until Ctrl-C."""
    settings = settings_from(os.environ)
    if settings.database_url:
        raise UsageError("DATABASE_URL is set: that database needs no serving")
    with open_database(settings) as url:
        typer.echo(connect(url).url.render_as_string(hide_password=False).replace("+psycopg", ""))
        complain("the database is up until Ctrl-C")
        signal.pause()


def doctor_command(
    line: Annotated[
        bool,
        typer.Option(
            "--line", help="Kafka, Airflow and the media store, too. Default: if $LECTUREMILL_BROKERS is set."
        ),
    ] = False,
    engine: Annotated[
        bool, typer.Option("--engine", help="Prove the engine, too: every precision and batch size. Takes minutes.")
    ] = False,
    device: Annotated[
        str, typer.Option(help="For --engine: auto, cpu, cuda, cuda:N, GPU-<uuid>, MIG-<uuid>.")
    ] = "auto",
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Check everything that the line needs; each finding comes with its remedy."""
    settings = settings_from(os.environ, database)
    findings = list(doctor.examine(settings))
    if line or os.environ.get("LECTUREMILL_BROKERS"):
        from pipeline.doctor_line import examine_line  # the Kafka client takes a quarter of a second to import

        findings += examine_line(settings, os.environ)
    if engine:
        from pipeline.doctor_engine import examine_engine  # the codecs and engines take a second to import

        findings += examine_engine(settings, device, os.environ, complain)
    if as_json:
        print_json(findings)
    else:
        rows = [("ok" if f.is_ok else "PROBLEM", f.what, f.detail, f.remedy) for f in findings]
        print_table("", ("", "what", "found", "remedy"), rows)
    if not all(finding.is_ok for finding in findings):
        raise typer.Exit(FAILED)
