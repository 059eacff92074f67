"""Encoders and the two architectures built on them."""
