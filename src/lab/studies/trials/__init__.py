"""What all studies share: the data's parts, the size of a study, one trial of one arm."""
