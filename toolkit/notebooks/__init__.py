"""Run notebooks for a scheduler, strict about their parameters, and find those that come with the toolkit."""
