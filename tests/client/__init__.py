"""The client against brokers that follow a script, so that every failure comes exactly when it is wanted."""
