"""What a trained network withstands: attacks on its word embeddings, small edits of the text."""
