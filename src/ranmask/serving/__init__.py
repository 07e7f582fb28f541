"""`ranmask serve`: the classifiers over HTTP, with the answers that the command line gives."""
