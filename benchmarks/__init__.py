"""Tidelog side by side with Apache Kafka, on the same machine, in the same run, with the same client.

make bench                              everything, five runs of each peer, and docs/benchmarks.md
make bench ARGS="--only start-up"       one benchmark (repeat for more); the page is made from all kept results
make bench ARGS="--quick"               small sizes, two runs, nothing kept: to see that it works
make bench ARGS="--list"                what there is
"""
