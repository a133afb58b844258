"""Real nodes that are killed, paused and cut off: what the cluster does about it."""
