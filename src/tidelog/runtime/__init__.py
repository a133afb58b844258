"""The real outside of a node: sockets, files, clock, helper threads and processes. It moves bytes; it never decides."""
