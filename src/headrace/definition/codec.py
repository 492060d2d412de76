"""The JSON form of definitions and the digest that tells whether two of them are the same."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from headrace.definition.workflow import Node, Workflow
from headrace.errors import DefinitionError

# Maps keep their order: in a `.dig` file it decides which task runs first and which parameter sees which.
_encoder = msgspec.json.Encoder()
_workflow_decoder = msgspec.json.Decoder(Workflow)
_node_decoder = msgspec.json.Decoder(Node)
_nodes_decoder = msgspec.json.Decoder(tuple[Node, ...])


def to_json(value: Workflow | Node | tuple[Node, ...] | Any) -> bytes:
    """Compact JSON with every map in its own order, so that equal definitions have equal bytes."""
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DefinitionError(f"a definition must be made of JSON values: {error}") from error


def workflow_from_json(data: bytes | str) -> Workflow:
    """A workflow out of its JSON form."""
    return _workflow_decoder.decode(data)


def node_from_json(data: bytes | str) -> Node:
    """A single node out of its JSON form."""
    return _node_decoder.decode(data)


def nodes_from_json(data: bytes | str) -> tuple[Node, ...]:
    """The nodes of a fragment out of their JSON form."""
    return _nodes_decoder.decode(data)


def digest(workflow: Workflow) -> str:
    """Changes if and only if the compiled workflow changes."""
    return hashlib.sha256(to_json(workflow)).hexdigest()
