"""The search for precisions by perplexity in compiled CPU loops (Numba)."""
