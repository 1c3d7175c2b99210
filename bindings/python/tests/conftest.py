import hypothesis

# Fixed examples: a failure is one that everybody sees.
hypothesis.settings.register_profile("bloomline", derandomize=True, deadline=None, max_examples=60, database=None)
hypothesis.settings.load_profile("bloomline")
