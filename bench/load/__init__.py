"""What the line over Kafka and PostgreSQL carries when the engine costs nothing: ``python -m bench.load``."""
