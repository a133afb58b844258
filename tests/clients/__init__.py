"""Real client libraries against one real node. BROKER_UNDER_TEST=kafka runs the same tests against Apache Kafka."""
