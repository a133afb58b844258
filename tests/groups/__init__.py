"""Groups in the simulated world."""
