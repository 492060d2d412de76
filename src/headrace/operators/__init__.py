"""What tasks can do: Python functions, shell commands, branching, and the operators of `.dig` files.

One module per operator, imported by whoever needs it. Operators build on `authoring`, `handoff` and `template`.
"""
