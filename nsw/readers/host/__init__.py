"""Reports of profilers of the CPU: perf, py-spy, cProfile, gprof, TAU, VTune, APS, oneDNN."""
