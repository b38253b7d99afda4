"""Command line: each command asks, calls the library, and shows what it returns."""
