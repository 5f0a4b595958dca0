"""What the contract says, without I/O, clock or environment."""
