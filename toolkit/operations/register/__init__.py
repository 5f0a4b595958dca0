"""Register: clients and sales enter, one by one or from spreadsheets; every row is judged by the contract."""
