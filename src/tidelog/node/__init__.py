"""The node: puts the rooms together behind one door, `step(event, now_ms) -> effects`."""

from tidelog.node.node import Node

__all__ = ["Node"]
