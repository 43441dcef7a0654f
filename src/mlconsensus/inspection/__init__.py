"""Inspect predictions without ground truth: agreement, flagged models, explanations."""
