"""Every limit, with its reason."""

MAX_CLASSES = 64
"""Classes that a tree distinguishes: growing it counts every class at every row."""

MAX_DEPTH = 200
"""Splits from the root to a leaf. Trees are walked recursively, and Python allows 1000 calls within each other."""

MAX_GROUPS = 32
"""Values of the column by which rows are split into trees of their own, each of which has its section in the report."""

MAX_MODEL_FILE_BYTES = 1 << 30
"""A file of a model. A forest of a million flows has some 10 million nodes, which are 70 MB in a file."""

MAX_MODEL_BYTES = 4 << 30
"""Arrays of a model in memory: ten times a forest of a million flows."""

MAX_MODEL_RATIO = 100
"""Bytes in memory for each in the file: models have up to 12, and decompression bombs up to 1032."""

MIN_MODEL_BYTES = 1 << 20
"""Memory that a model may take regardless of the size of its file."""

MAX_MODEL_ARRAYS = 1 << 16
"""Arrays of a model. A tree of counts has 15 for each leaf, and at most a leaf for 30 flows."""

MAX_DESCRIPTION_BYTES = 1 << 16
"""The description of a model: it names 18 features and 4 classes at most."""

MAX_MODEL_TREES = 1000
"""Trees of a forest, each of which every flow goes through. Ours have 100."""

MAX_MODEL_DEPTH = 1000
"""Depth of one tree. Trees of forests of a million flows have less than 100."""

MAX_UNPACKED_RATIO = 200
"""Bytes unpacked for each of a compressed file: logs of flows have up to 30, decompression bombs 1000."""

MIN_UNPACKED_BYTES = 64 << 20
"""Unpacked size that a compressed file may have regardless of its own."""

MAX_UNPACKING_BYTES = 256 << 20
"""Memory that unpacking may take: the strongest setting of xz needs 65 MiB, and a file can ask for 4 GiB."""

MAX_TABLE_ROWS = 1_000_000
"""Rows of a table of transfers, all of which are held in memory: some 2 GB. The full run of the study has 2016."""
