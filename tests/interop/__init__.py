"""Tidelog beside Apache Kafka's own programs: its tools, its judge of files, and the broker itself on our directory."""
