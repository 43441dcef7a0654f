"""What a panel and a score tell without truth: diagnostics and explanations."""
