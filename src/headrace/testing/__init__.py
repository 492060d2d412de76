"""What tests of Headrace and of workflows are made with: real servers, an engine with a movable clock, a project on
disk, a seeded simulation of a whole cluster on which everything goes wrong, and a cluster of real processes (`faults`).

It may import every room but `cli`. Each module is imported by its own name, so that a test pays only for what it uses:
`engine`, `project`, `simulation`, `postgres` (which needs a driver and binaries).
"""
