"""Combiners, one method per file: equations, class, function."""
