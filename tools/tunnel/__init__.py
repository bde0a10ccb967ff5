"""The experiments `tunnel/*`, see tools/tunnel_experiments.py."""
