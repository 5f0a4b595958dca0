"""Register clients and sales, one by one or from spreadsheets; the contract judges every row."""
