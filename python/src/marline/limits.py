"""Every limit, with its reason."""

MAX_CLASSES = 64
"""Classes that a tree tells apart: growing it counts every class at every row."""

MAX_DEPTH = 200
"""Splits from the root to a leaf. Trees are walked recursively, and Python allows 1000 calls within each other."""

MAX_GROUPS = 32
"""Values of the column by which rows are split into trees of their own, each of which has its section in the report."""
