"""The command line: parse, call, print. The commands are in :mod:`tamiz.cli.main`."""

import os

# Arrow's own allocator reserves a gigabyte of addresses, which counts under ``ulimit -v``; the system's does not.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
