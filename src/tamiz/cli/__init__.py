"""Command line: parse, call, print. Each command is in a module of its own name."""

import os

# Arrow's own allocator reserves a gigabyte of addresses, which counts under ``ulimit -v``; the system's does not.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
