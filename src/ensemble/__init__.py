"""From member predictions to a submission."""
