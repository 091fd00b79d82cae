"""Experiments with omics data."""
