"""The contract as code, without I/O, clock or environment."""
