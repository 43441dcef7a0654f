"""What a panel and a score tell without truth: which method, diagnostics and explanations."""
