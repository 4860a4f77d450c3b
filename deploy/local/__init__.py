"""The whole stack on one machine, without Docker: PostgreSQL, Kafka, Airflow and the consumers as plain processes."""
