"""The fault harness: a cluster of real processes under a mixed load, things that go wrong, and a check of the history.

`python -m headrace.testing.faults` runs the whole list; the tests in `tests/faults` run a short form of it. Tasks write
down what they do in a file of their own (`load/noting.py`), so that the store's word is compared with theirs.
"""
