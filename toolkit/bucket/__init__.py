"""The S3 bucket: sessions, the client, presigned POST and listings."""
