"""What the baselines that train a network share: recipes, training, the one-to-one layer of DFS, the saliency of SFS.

``recipes`` and ``selector`` load without torch; the other modules need it.
"""
