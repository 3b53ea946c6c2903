"""What the three applications share: fitting, storage, scaling, distances."""
