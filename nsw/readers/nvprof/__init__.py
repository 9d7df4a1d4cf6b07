"""Reports of nvprof."""
