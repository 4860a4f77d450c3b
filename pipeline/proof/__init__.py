"""Proofs that an engine writes the right texts on this machine, in a precision and in batches of a size."""
