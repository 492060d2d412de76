"""Measures Headrace on the workloads W1 to W12. `python -m benchmarks --help` tells how."""
