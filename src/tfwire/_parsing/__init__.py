"""Parsing by a specification: from messages to columns, batch by batch."""
