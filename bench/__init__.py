"""What is measured, against what, on which data. ``python -m bench.line`` prints the tables."""
