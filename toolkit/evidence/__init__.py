"""Evidence of a sale: credentials, upload, records, withdrawal and completion."""
