"""Write docs/protocol.md from the requests a node serves; `--check` only says whether the page is current."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from tidelog.node import apis
from tidelog.wire.api_table import API_TABLE, ApiKey
from tidelog.wire.apis import api_name, api_versions

PAGE = Path(__file__).resolve().parent.parent / "docs" / "protocol.md"

HEAD = """# Protocol

<!-- Made by `make docs` from src/tidelog/node/apis; a test fails when this page is not current. -->

Every request of Apache Kafka 4.3.1 that Tidelog knows of, and the versions it serves: on the listeners of brokers,
where clients are, and on those of controllers. Only what is served is advertised in ApiVersions. Requests for
security, share groups, streams groups and telemetry are not served and not listed.

| request | Kafka | broker | controller |
|---|---|---|---|
"""

NOTES = """
- Produce is advertised from 0 because librdkafka before 2.11.1 turns compression off where the minimum is higher;
  versions 0 to 2 are answered with an error.
- An unknown version of ApiVersions is answered with UNSUPPORTED_VERSION in the form of version 0 (KIP-511).
"""


def versions_text(versions: tuple[int, int] | None, kafka: tuple[int, int]) -> str:
    """A range; a dash for what is not served, and a mark where Kafka has a newer version."""
    if versions is None:
        return "–"
    low, high = versions
    text = str(low) if low == high else f"{low}–{high}"
    return text if high >= kafka[1] else f"{text} (Kafka has newer)"


def row(api_key: int, broker: Mapping[int, tuple[int, int]], controller: Mapping[int, tuple[int, int]]) -> str:
    """One request."""
    kafka = api_versions(api_key)
    cells = [api_name(api_key), versions_text(kafka, kafka)]
    cells += [versions_text(table.get(api_key), kafka) for table in (broker, controller)]
    return f"| {' | '.join(cells)} |"


def page() -> str:
    """The whole page."""
    rows = [row(key, apis.BROKER_VERSIONS, apis.CONTROLLER_VERSIONS) for key in sorted(API_TABLE)]
    assert set(apis.BROKER_VERSIONS) | set(apis.CONTROLLER_VERSIONS) <= {int(key) for key in ApiKey}
    return HEAD + "\n".join(rows) + "\n" + NOTES


def main() -> None:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when the page is not current")
    if parser.parse_args().check:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
            raise SystemExit("docs/protocol.md is not current: run make docs")
        return
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
