"""Sites: where campaigns run; every fault of a sites file with its place and the offending text."""
