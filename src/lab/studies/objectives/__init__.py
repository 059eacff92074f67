"""Losses over question vectors alone, and the network whose answer is their cosine."""
