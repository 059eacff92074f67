"""From the trials of a study to its table, its files and its figure."""
