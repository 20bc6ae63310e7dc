"""What is claimed of this package's own methods: intervals, calibration, forecasts, attacks."""
