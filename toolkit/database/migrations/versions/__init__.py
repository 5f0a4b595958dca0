"""One module a change; a change that was released is never edited."""
