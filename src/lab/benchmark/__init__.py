"""How fast is it? This project against sentence-transformers, and what its own parts cost.

Everything is measured in one run of one machine. Contenders take turns (A B A B …) on the same
pairs, so that a machine that slows down for a while slows both, and a ratio is formed within each
round.
"""
