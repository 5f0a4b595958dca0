"""The only place that knows SQLAlchemy, psycopg and boto3."""
