import hypothesis

# Examples are drawn the same way on every machine, so that a failure in CI is a failure here.
hypothesis.settings.register_profile("mlconsensus", deadline=None, derandomize=True, max_examples=40)
hypothesis.settings.load_profile("mlconsensus")
