"""Tables and figures of the four papers, each beside the paper's number."""
