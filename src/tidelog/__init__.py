"""Tidelog: a replicated log in Python that speaks Kafka's protocol and writes Kafka's files."""

from __future__ import annotations

__version__ = "0.1.0"
