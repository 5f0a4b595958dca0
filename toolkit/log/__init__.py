"""The custody log: events, sealing, export and verification."""
