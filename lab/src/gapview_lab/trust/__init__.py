"""Whether what gapview says about its own results is true."""
