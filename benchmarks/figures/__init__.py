"""One file a benchmark. A new one is a class here and a line in `benchmarks.catalogue`."""
