"""Airflow's settings for one machine, given by environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PARALLELISM = 4
"""Tasks at the same time; each is a process of 150 MB."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What must be up before Airflow: its own database, and whatever its tasks find in their environment."""

    database_url: str
    environment: Mapping[str, str]


def airflow_settings(home: Path, dags: Path, base_url: str, database_url: str) -> dict[str, str]:
    """The settings that all four programs share.

    The secrets that they share too (for tokens, sessions and stored passwords) are made by Airflow on its
    first start, in ``home/airflow.cfg``, which only its owner can read.
    """
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__PARALLELISM": str(PARALLELISM),
        # Whoever reaches the loopback interface of this machine may do everything.
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{base_url}/execution/",
        "AIRFLOW__API__BASE_URL": base_url,
        # Airflow would take asyncpg, which is not here; psycopg 3 does both.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database_url,
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": database_url,
    }
