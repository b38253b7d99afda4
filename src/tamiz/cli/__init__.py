"""The command line: parse, call, print. The commands are in :mod:`tamiz.cli.main`."""
