create database airflow;
