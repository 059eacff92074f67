"""Batches, adversarial perturbation and the training loop."""
