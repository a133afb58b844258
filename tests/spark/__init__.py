"""The formats and pipelines on a real Spark."""
