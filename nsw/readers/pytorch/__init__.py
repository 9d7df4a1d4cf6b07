"""Reports of PyTorch's profiler: traces and tables."""
