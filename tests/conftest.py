"""Settings every test shares."""

from hypothesis import settings

# No clocks in tests: a busy machine is not a failure.
settings.register_profile("hetrisk", deadline=None, max_examples=40)
settings.register_profile("attack", deadline=None, max_examples=2000)
settings.load_profile("hetrisk")
