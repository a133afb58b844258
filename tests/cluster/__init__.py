"""Whole clusters of real processes, with confluent-kafka."""
