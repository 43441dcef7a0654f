"""What was said: predictions of models, matched by name, with silence; the only place where data is validated."""
