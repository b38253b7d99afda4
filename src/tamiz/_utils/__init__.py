"""Helpers that import no room: validation, names, optional packages, files, progress, text."""
