"""Comparison of methods by held-out models, gold labels and ground truth."""
