"""Bring the jars that `tidelog pipeline land` writes Delta and reads Avro with into a cache directory, once.

    python tools/fetch_lake_jars.py      fetch what is missing, print the jars, comma-separated (for spark.jars)

`make setup` runs it; an installed Tidelog has the same as `tidelog pipeline fetch`.
"""

from __future__ import annotations

import sys

from tidelog.spark.pipelines import jars


def main() -> int:
    """The command."""
    try:
        print(",".join(str(jar) for jar in jars.fetch((*jars.DELTA, *jars.AVRO), jars.directory(), tries=3)))
    except jars.FetchError as error:
        print(f"fetch_lake_jars: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
