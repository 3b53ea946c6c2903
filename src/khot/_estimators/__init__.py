"""What the applications share: input, scaling, fitting, encoding, saving, distances."""
