#!/bin/sh
# Makes the secrets of docker-compose.yml beside this script, in the folder `secrets`; one that is there stays.
# The folder can be entered by its owner only. Inside containers another user reads the files, so they are open.
set -eu
cd "$(dirname "$0")"
mkdir -p -m 700 secrets

# Hexadecimal, so that it can stand in a URL as it is.
for name in postgres_password airflow_password airflow_jwt_secret airflow_session_secret; do
    [ -s "secrets/$name" ] || od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"secrets/$name"
done
# Fernet keys are 32 bytes in base64 for URLs.
[ -s secrets/airflow_fernet_key ] || head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '\n' >secrets/airflow_fernet_key
chmod 644 secrets/*
