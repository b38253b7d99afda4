"""Protocols, one module per table or figure of the paper; :mod:`tamiz.reproduce.registry` lists them."""
