"""The Kafka programs of the line. Only ``loop.py`` will know Kafka; the steps they call live in ``pipeline``."""
