"""Transactions in the simulated world."""
