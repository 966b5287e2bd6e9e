"""Datasets, random pipelines and iterators with threads."""
