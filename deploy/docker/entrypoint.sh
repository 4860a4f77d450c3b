#!/bin/sh
# Secrets come as files; the programs want them inside settings. Then the program takes this one's place.
set -eu

secret() {
    cat "/run/secrets/$1"
}

server="postgresql+psycopg://lecturemill:$(secret postgres_password)@postgres:5432"
export DATABASE_URL="$server/lecturemill"

if [ -e /run/secrets/airflow_jwt_secret ]; then
    AIRFLOW__API_AUTH__JWT_SECRET=$(secret airflow_jwt_secret)
    AIRFLOW__API__SECRET_KEY=$(secret airflow_session_secret)
    AIRFLOW__CORE__FERNET_KEY=$(secret airflow_fernet_key)
    AIRFLOW__DATABASE__SQL_ALCHEMY_CONN="$server/airflow"
    AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC="$server/airflow"
    export AIRFLOW__API_AUTH__JWT_SECRET AIRFLOW__API__SECRET_KEY AIRFLOW__CORE__FERNET_KEY
    export AIRFLOW__DATABASE__SQL_ALCHEMY_CONN AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC
    # Airflow opens this file for writing, and a secret cannot be written.
    (umask 077; printf '{"lecturemill": "%s"}' "$(secret airflow_password)" >"$AIRFLOW_HOME/passwords.json")
fi

exec "$@"
