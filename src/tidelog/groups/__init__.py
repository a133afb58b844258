"""Consumer groups: committed offsets, the classic protocol, and the consumer protocol of KIP-848.

A group lives in one partition of `__consumer_offsets`. What must survive is a record there; what only the members'
next words can bring back (who waits, whose session runs) is kept in memory and begins anew with another coordinator.
"""
