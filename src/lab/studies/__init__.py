"""The article's comparisons and ablations, rerun with evidence: `python -m src study NAME`.

A study compares arms. An arm is one way to make a matcher; a trial trains it once, on the training
part of one seed, and scores the same evaluation pairs as all other arms. One file a study; what
they share is in bench/ (parts, trials) and results/ (statistics, table, figure).
"""
