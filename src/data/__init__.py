"""Pair tables: read, validate, connect, split, augment."""
