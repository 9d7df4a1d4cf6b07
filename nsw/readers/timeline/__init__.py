"""What the readers of timelines share: phases, iterations, communication, statistics of many durations."""
