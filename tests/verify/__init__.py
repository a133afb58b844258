"""The verifier judged."""
