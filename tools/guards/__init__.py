"""The adapters for other guards, tested with the real packages in an environment of their own."""
