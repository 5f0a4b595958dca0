"""The contract in values: its codes, fields and rules, without database or bucket."""
