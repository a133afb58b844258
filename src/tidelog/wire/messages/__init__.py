"""One module an API: its request, its response and what is inside them. Written by tools/generate_messages.py."""
