"""A project's files as one archive: packed by whoever pushes, unpacked safely wherever its tasks run.

It imports nothing of ours but `errors`: the pushing side and the agents both use it. What is needed is imported from
its own module, because the processes that load files want the ignore rules and nothing else.
"""
