"""Encoders from before pre-trained Transformers, as `models.api.Encoder`, for the study `encoder`.

Each takes packed tokens (models/tokens.py). Where a layer needs a rectangle, pads are masked, so
that a question's vector does not depend on what else is in its batch.
"""
