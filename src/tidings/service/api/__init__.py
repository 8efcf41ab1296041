"""The REST API: operations with their documents, keys and limits in front of them, one writer behind them."""
