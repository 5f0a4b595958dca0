"""Settings, database, bucket and clock, assembled for the entrypoints."""
