"""Scripts that measure what the documentation says: ``python -m benchmarks`` runs them all."""
