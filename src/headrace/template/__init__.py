"""Rendering of what users write into their tasks: {{ Jinja }} for Python DAGs, ${JavaScript} for `.dig` files.

One module per engine, imported by whoever needs that engine. This room imports nothing of ours but `errors`.
"""
