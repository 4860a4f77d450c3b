"""The schema as Alembic migrations (``versions/``), and queries to start from (``examples/``).

Tables live in the schema ``lecturemill``; analysts read the views and call ``search`` in ``public``.
"""
