"""Scores with intervals, figures and the HTML page."""
