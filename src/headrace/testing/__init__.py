"""What tests of Headrace and of workflows are made with: real servers, an engine with a movable clock.

It may import every room but `cli`. `postgres.py` is imported by its own name, as it needs a driver and binaries.
"""
