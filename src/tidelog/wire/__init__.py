"""Kafka's wire format: frames, messages and their codec, record batches."""
