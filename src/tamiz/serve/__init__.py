"""The live page of ``tamiz serve``: drop a table, drag M, and watch what is kept and how well it predicts."""
