"""The Kafka programs of the line. Only ``loop.py`` with its parts knows Kafka; the steps live in ``pipeline``."""
