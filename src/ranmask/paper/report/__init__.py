"""Reports: result files in, one page of HTML or Markdown out.  Nothing here loads a model."""
