"""Helpers shared by the tests and benchmarks that use real processes: nodes of Tidelog and of Apache Kafka."""
