"""One module a stored record. Written by tools/generate_messages.py."""
