"""What takes an hour: `make soak`, or `make soak MINUTES=5` for less of everything that is measured in time."""
