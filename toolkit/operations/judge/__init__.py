"""Judge every sale by the minimum-evidence rules, complete sales, and withdraw records."""
