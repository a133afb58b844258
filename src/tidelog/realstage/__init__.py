"""Scripts played on real processes: the nodes that are shipped, a network that can be held, and confluent-kafka."""
