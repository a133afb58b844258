"""The `tidelog` command as a user types it."""
