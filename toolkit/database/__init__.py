"""PostgreSQL: the connection, its errors, the tables and the schema."""
