"""One module a section: reproductions in, neutral blocks out."""
