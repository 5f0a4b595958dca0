"""Judge: hold every sale against the minimum-evidence rules, and act on the verdict: complete, withdraw."""
