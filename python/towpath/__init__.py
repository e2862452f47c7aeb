"""Moves data between processors: for real, or simulated on a machine that is only described."""
