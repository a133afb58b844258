"""Deciding: one idea a file, each `decide(image, request, context) -> Decision`. Nothing here changes an image."""

from __future__ import annotations

from tidelog.controller.decide.decision import Context, Decision, Liveness

__all__ = ["Context", "Decision", "Liveness"]
