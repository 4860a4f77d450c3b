"""docker-compose.yml without an engine: by its schema, and by what must hold of any service."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from deploy.local.__main__ import PORTS
from deploy.local.stack import CONSUMERS

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "docker-compose.yml"
DOCKER = ROOT / "deploy" / "docker"
SERVICES: dict[str, dict[str, Any]] = YAML(typ="safe").load(COMPOSE)["services"]


def test_the_compose_file_is_valid_by_the_compose_specification() -> None:
    program = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_open_on_the_loopback_interface_only(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))


@pytest.mark.parametrize("name", sorted(SERVICES.keys() - {"init"}))
def test_a_service_has_a_health_check_and_comes_back(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"]
    assert SERVICES[name]["restart"] == "unless-stopped"


def test_each_consumer_is_a_service_that_starts_a_module_there_is() -> None:
    commands = [service["command"] for service in SERVICES.values() if "-m" in service.get("command", [])]
    modules = {command[command.index("-m") + 1] for command in commands}
    assert modules == {f"consumers.{name}" for name in CONSUMERS}
    assert all(importlib.util.find_spec(module) for module in modules)


def test_the_services_listen_where_the_stack_without_docker_does() -> None:
    assert SERVICES["kafka"]["ports"] == [f"127.0.0.1:{PORTS['kafka']}:9092"]
    assert SERVICES["airflow-api-server"]["ports"] == [f"127.0.0.1:{PORTS['airflow']}:8080"]


def test_no_service_takes_everybody_for_an_administrator() -> None:
    for service in SERVICES.values():
        assert "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS" not in service["environment"]


def test_no_password_stands_in_a_service() -> None:
    for service in SERVICES.values():
        spoken = {name for name in service["environment"] if "PASSWORD" in name or "SECRET" in name or "KEY" in name}
        assert all(name.endswith(("_FILE", "PASSWORDS_FILE")) for name in spoken)


def test_the_script_makes_every_secret_once(tmp_path: Path) -> None:
    script = Path(shutil.copy(DOCKER / "make-secrets.sh", tmp_path))
    subprocess.run([script], check=True)
    made = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert made.keys() == YAML(typ="safe").load(COMPOSE)["secrets"].keys()
    assert len(set(made.values())) == len(made)
    assert all(len(text) >= 32 and text.isascii() and text.split() == [text] for text in made.values())
    assert (tmp_path / "secrets").stat().st_mode & 0o077 == 0
    subprocess.run([script], check=True)
    assert {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()} == made


def test_git_does_not_see_the_secrets() -> None:
    assert "/secrets/" in (DOCKER / ".gitignore").read_text().splitlines()


@pytest.fixture
def entrypoint(tmp_path: Path) -> Path:
    """The entry point of the images, with its secrets under ``tmp_path`` instead of /run."""
    text = (DOCKER / "entrypoint.sh").read_text().replace("/run/secrets", str(tmp_path))
    made = tmp_path / "entrypoint.sh"
    made.write_text(text)
    (tmp_path / "postgres_password").write_text("0a1b")
    return made


def environment_of(entrypoint: Path) -> dict[str, str]:
    printer = "import json, os; print(json.dumps(dict(os.environ)))"
    command = ["sh", str(entrypoint), sys.executable, "-c", printer]
    surroundings = {"AIRFLOW_HOME": str(entrypoint.parent), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=True)
    environment: dict[str, str] = json.loads(done.stdout)
    return environment


def test_a_consumer_gets_the_database_and_nothing_of_airflow(entrypoint: Path) -> None:
    environment = environment_of(entrypoint)
    assert environment["DATABASE_URL"] == "postgresql+psycopg://lecturemill:0a1b@postgres:5432/lecturemill"
    assert not any(name.startswith("AIRFLOW__") for name in environment)


def test_airflow_gets_its_secrets_and_a_password_file_of_its_own(entrypoint: Path) -> None:
    for name in ("airflow_jwt_secret", "airflow_session_secret", "airflow_fernet_key", "airflow_password"):
        (entrypoint.parent / name).write_text(f"the {name}")
    environment = environment_of(entrypoint)
    assert environment["AIRFLOW__API_AUTH__JWT_SECRET"] == "the airflow_jwt_secret"
    assert environment["AIRFLOW__API__SECRET_KEY"] == "the airflow_session_secret"
    assert environment["AIRFLOW__CORE__FERNET_KEY"] == "the airflow_fernet_key"
    assert environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"].endswith("lecturemill:0a1b@postgres:5432/airflow")
    passwords = entrypoint.parent / "passwords.json"
    assert json.loads(passwords.read_text()) == {"lecturemill": "the airflow_password"}
    assert passwords.stat().st_mode & 0o077 == 0
