"""The loop that survives kill -9: the ledger, and rounds that poll, judge, collect and submit. It knows no use case."""
