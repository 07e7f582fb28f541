"""Made-up reproductions, and the report that they give, for the tests of reports."""
