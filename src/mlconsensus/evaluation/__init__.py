"""Metrics, decisions (label sets from scores), and truth matched to what it judges."""
