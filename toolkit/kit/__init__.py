"""What the entrypoints assemble: settings, database, bucket and clock."""
