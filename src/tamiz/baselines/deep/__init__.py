"""Shared parts of the baselines that train a network: recipes, training, the layer of DFS, the saliency of SFS.

``recipes`` and ``selector`` load without torch; the other modules need it.
"""
