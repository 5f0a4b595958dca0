"""Take in what partners send: spreadsheets of clients and of sales."""
