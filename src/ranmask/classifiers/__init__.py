"""Base classifiers: a plain function, a Hugging Face encoder, a fake for tests."""
