"""Question-pair matching for Tianchi 231776: a staged, resumable competition solution."""
