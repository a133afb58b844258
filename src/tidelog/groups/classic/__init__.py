"""The classic protocol: members join, one of them assigns, all learn it with sync, and heartbeats keep them in."""
