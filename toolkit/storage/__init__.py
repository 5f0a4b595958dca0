"""PostgreSQL and S3: tables and migrations, connections, the bucket, and the embedded services."""
