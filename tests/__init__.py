"""The tests; what several of them share is in ``tests.support``."""
