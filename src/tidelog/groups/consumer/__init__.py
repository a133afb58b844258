"""The consumer protocol of KIP-848: the coordinator assigns, members reconcile one heartbeat at a time."""
