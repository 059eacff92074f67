"""Losses over question vectors alone, and the network whose answer is their cosine.

The study `objective` compares them. Losses that a profile can name: src/training/objective.py.
"""
