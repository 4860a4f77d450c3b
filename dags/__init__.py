"""The Airflow DAGs that plan the line. What is heavy is imported inside the tasks, never when a file is read."""
