"""Sample data that a person would believe: synthetic, seeded, nobody real."""
