"""GNU's profiler: gprof."""
