"""Pre-train an encoder on unlabelled questions, each architecture with the task it is known for."""
