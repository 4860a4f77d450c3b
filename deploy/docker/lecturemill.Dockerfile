# Three images of one package: `worker` (consumers on CPUs), `gpu` (the same with CUDA's libraries) and `scheduler`
# (with Airflow and the DAGs; its tasks decode and cut the media). None has torch.
FROM python:3.11-slim-bookworm AS base
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1
# Volumes take over the owner of the folder that they cover.
RUN useradd --uid 10001 --create-home lecturemill \
    && install -d -o lecturemill -g lecturemill /media /var/lib/airflow /var/lib/airflow/logs /home/lecturemill/.cache
WORKDIR /src
COPY pyproject.toml requirements.lock README.md LICENSE NOTICE CHANGELOG.md ./
COPY pipeline pipeline
COPY consumers consumers
COPY sql sql
COPY --chmod=755 deploy/docker/entrypoint.sh /usr/local/bin/entrypoint
ENTRYPOINT ["entrypoint"]

FROM base AS worker
RUN pip install --constraint requirements.lock .
USER lecturemill
WORKDIR /home/lecturemill

FROM base AS gpu
RUN pip install --constraint requirements.lock '.[gpu]'
# CTranslate2 finds the libraries of these packages only by the loader's path.
ENV LD_LIBRARY_PATH=/usr/local/lib/python3.11/site-packages/nvidia/cublas/lib:/usr/local/lib/python3.11/site-packages/nvidia/cudnn/lib
USER lecturemill
WORKDIR /home/lecturemill

FROM base AS scheduler
RUN pip install --constraint requirements.lock '.[airflow]'
COPY dags /opt/lecturemill/dags
ENV PYTHONPATH=/opt/lecturemill AIRFLOW_HOME=/var/lib/airflow AIRFLOW__CORE__DAGS_FOLDER=/opt/lecturemill/dags
USER lecturemill
WORKDIR /home/lecturemill
