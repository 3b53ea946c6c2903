"""The successive softmax in compiled CPU loops (Numba)."""
