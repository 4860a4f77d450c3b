"""Reading the DAG files is cheap: Airflow does it over and over, in a process without models."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

DAGS = ("ingest_media", "backfill_course", "audit_media")
MAX_OWN_MODULES = 10

# Airflow is imported first: what it needs itself is not ours to judge.
PARSE = """
import sys
import airflow.sdk, airflow.triggers.base, airflow.providers.standard.triggers.temporal
before = set(sys.modules)
import dags.ingest_media, dags.backfill_course, dags.audit_media
print("\\n".join(sorted(set(sys.modules) - before)))
"""


def imported(home: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PARSE], env={"AIRFLOW_HOME": home}, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_no_dag_file_imports_the_line_or_anything_heavy(tmp_path: Any) -> None:
    names = imported(str(tmp_path))
    ours = {name for name in names if name.partition(".")[0] == "dags"}
    assert ours >= {f"dags.{name}" for name in DAGS}
    assert len(ours) <= MAX_OWN_MODULES
    heavy = {"pipeline", "consumers", "numpy", "av", "faster_whisper", "ctranslate2", "onnxruntime", "spacy", "kafka"}
    assert not {name.partition(".")[0] for name in names} & heavy


def test_airflow_reads_the_files_without_an_error(dag_bag: Any) -> None:
    assert dag_bag.import_errors == {}
    assert set(dag_bag.dags) == set(DAGS)


def test_the_audit_asks_for_a_task_that_there_is(dag_bag: Any) -> None:
    from dags.common import INGEST, SLICING_TASK

    assert SLICING_TASK in dag_bag.dags[INGEST].task_ids


def test_what_may_stay_empty_in_a_form_is_null(dag_bag: Any) -> None:
    """The UI takes any other empty field for a necessary one, and offers no button."""
    params = {(name, field): value for name, dag in dag_bag.dags.items() for field, value in dag.params.items()}
    assert params
    assert [key for key, value in params.items() if value in ("", [])] == []
