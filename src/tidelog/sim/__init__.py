"""The simulated outside of a node: the same core over a disk, a clock and a network that a seed decides."""
