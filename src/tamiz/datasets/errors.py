"""What can go wrong between a dataset's name and its arrays."""

from __future__ import annotations


class DatasetError(RuntimeError):
    """A dataset could not be had, or is not what it should be; the message says what to do."""


class DownloadError(DatasetError):
    """A file could not be fetched; the cache is as it was, short of a part that a later try resumes."""


class UnknownDatasetError(DatasetError, ValueError):
    """No dataset has that name; the message holds the nearest one."""
