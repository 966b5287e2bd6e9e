"""Servers of objects."""
