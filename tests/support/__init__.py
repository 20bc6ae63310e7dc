"""What tests of several rooms, and benchmarks, share."""
