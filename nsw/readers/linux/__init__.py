"""Linux perf: counts of events, and samples of where the CPU was."""
