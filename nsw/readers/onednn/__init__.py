"""oneDNN, which was DNNL, which was MKL-DNN: the library of primitives below PyTorch and TensorFlow on CPUs."""
