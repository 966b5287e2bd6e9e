"""Datasets: sources of elements and their transformations."""
